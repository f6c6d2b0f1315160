"""The parts of the observer that do not need torch."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from plimsoll.run.contents import blocks, contents, lines, native_stack
from plimsoll.run.observe import peaks, phases
from plimsoll.run.observe.peaks import Window
from plimsoll.run.process import stop

from plimsoll import autograd_threads

HOME = str(Path(blocks.__file__).parents[3])


class Recorder:
    """A timeline with numbered cuts: the n-th window has peak n."""

    def __init__(self, steps=None):
        self.cuts = 0
        self.timeline = phases.Timeline(self.cut, lambda: None, stop.Stop(steps).check)

    def cut(self):
        self.cuts += 1
        return {0: Window(self.cuts, self.cuts, self.cuts, self.cuts, self.cuts)}

    def step(self):
        self.timeline.forward_begins()
        self.timeline.backward_begins()
        self.timeline.backward_ends()
        self.timeline.optimizer_begins()
        self.timeline.optimizer_ends()


def test_work_after_the_optimizer_starts_the_next_step():
    recorder = Recorder()
    recorder.step()
    recorder.step()
    recorder.timeline.close()
    (_, first), (_, second) = recorder.timeline.numbered_steps()
    assert list(first) == ["forward", "backward", "other", "optimizer"]
    assert list(second)[0] == "other"
    assert recorder.timeline.done_steps == 2
    assert recorder.timeline.after["other"][0].active == recorder.cuts


def test_consecutive_optimizers_are_one_step():
    recorder = Recorder()
    recorder.step()
    recorder.timeline.optimizer_begins()
    recorder.timeline.optimizer_ends()
    recorder.step()
    recorder.timeline.close()
    assert recorder.timeline.done_steps == 2


def test_nested_backward_and_optimizers_inside_backward_end_one_step_with_it():
    recorder = Recorder()
    timeline = recorder.timeline
    timeline.forward_begins()
    timeline.backward_begins()
    timeline.backward_begins()
    timeline.optimizer_begins()
    timeline.optimizer_ends()
    assert not timeline.backward_ends()
    assert timeline.done_steps == 0
    assert timeline.backward_ends()
    assert timeline.done_steps == 1


def test_the_run_stops_before_the_next_step():
    recorder = Recorder(steps=1)
    recorder.step()
    recorder.timeline.optimizer_begins()
    recorder.timeline.optimizer_ends()
    with pytest.raises(stop.EnoughSteps) as end:
        recorder.timeline.forward_begins()
    assert end.value.code == 0


def test_a_long_run_keeps_first_last_and_highest_steps():
    recorder = Recorder()
    for _ in range(1000):
        recorder.step()
    recorder.timeline.close()
    numbers = [number for number, _ in recorder.timeline.numbered_steps()]
    assert len(numbers) < 300 and numbers == sorted(set(numbers))
    assert numbers[0] == 0 and numbers[-1] == 999
    assert recorder.timeline.highest[0].step in (*numbers, None)


def test_peaks_are_folded_and_put_back():
    def stats(peak):
        return {
            "num_ooms": 0,
            "active": {"all": {"current": 1, "peak": peak}},
            "oversize": {"current": 0, "peak": peak},
        }

    kept = {}
    peaks.fold_peaks(stats(9), kept)
    peaks.fold_peaks(stats(4), kept)
    later = stats(5)
    peaks.raise_peaks(later, kept)
    assert later["active"]["all"]["peak"] == later["oversize"]["peak"] == 9


@pytest.mark.parametrize(
    "requested, gap, taken",
    [
        (1, 2 << 20, 512),
        (513, 1024 + 512, 1024),
        (513, 1024 + 511, 1024 + 511),
        (3 << 20, 20 << 20, 3 << 20),
        (19 << 20, 20 << 20, 20 << 20),
        (3 << 20, (4 << 20) + 512, 3 << 20),
    ],
)
def test_a_block_includes_the_rest_of_a_gap_too_small_to_split(requested, gap, taken):
    assert blocks.Rules({}).taken(requested, gap) == taken


def test_sizes_are_rounded_by_divisions_of_a_power_of_two():
    rules = blocks.Rules({"roundup_power2_divisions": {str(1 << power): 4 for power in range(16)}})
    assert rules.rounded(1200 * 512) == 1280 * 512
    assert rules.rounded(1 << 20) == 1 << 20
    assert rules.rounded(700) == 1024


def test_operator_names_come_from_mangled_symbols():
    assert native_stack.operator_name(b"_ZN2at4_ops7nonzero4callERKNS_6TensorE") == "nonzero"
    assert native_stack.operator_name(b"_ZN2at6native7nonzeroE") == ""


def test_a_request_outside_each_known_segment_has_its_requested_size():
    layout = blocks.Layout({"segments": []}, 0)
    layout.apply({"action": "alloc", "addr": 1 << 30, "size": 700})
    layout.apply({"action": "segment_alloc", "addr": 1 << 20, "size": 2 << 20})
    layout.apply({"action": "alloc", "addr": 1 << 31, "size": 1})
    assert layout.active_bytes == 1024 + 512


def test_a_count_that_the_script_resets_continues():
    total = peaks._Total()
    for count in (5, 8, 2, 3):
        total.see(count)
    assert total.value == 11


class ShortHistory:
    """A history of ten entries. The script records too, so that nothing is cleared."""

    started, script_records, max_entries = True, True, 10

    def __init__(self):
        self.trace = []

    def allocate(self, count):
        for n in range(len(self.trace), len(self.trace) + count):
            self.trace.append({"action": "alloc", "addr": n << 20, "size": 512, "time_us": n})

    def snapshot(self):
        known = {"blocks": [{"address": n << 20, "size": 512, "state": "active"} for n in range(len(self.trace))]}
        segment = {"device": 0, "address": 0, "total_size": 1 << 40, **known}
        return {"segments": [segment], "device_traces": [self.trace[-10:]]}


def test_a_history_without_its_beginning_is_reported_and_not_replayed():
    history, books, notes = ShortHistory(), peaks.Peaks(None, None, None), []
    device = books.devices[0] = peaks.Device()
    found = contents.Contents(history, books, False, lambda: False, notes.append)
    for count in (9, 8):  # more than ten in total, but each stretch is complete
        history.allocate(count)
        device.active_peak = 512 * len(history.trace)
        found.new_stretch()
        assert found.alive_at_peak(0).active_bytes == device.active_peak and notes == []
    history.allocate(11)
    device.active_peak = 512 * len(history.trace)
    found.finish()
    assert found.alive_at_peak(0).active_bytes == 512 * 17 and "too short" in notes[0]


def test_only_python_is_the_users_code(tmp_path):
    assert lines.is_user_file("/home/me/train.py")
    assert not any(map(lines.is_user_file, ("../sysdeps/unix/clone3.S", "/home/me/train", "??", "", "<string>")))
    lines.runs("/home/me/train")
    assert lines.is_user_file("/home/me/train")


def test_a_deleted_working_folder_does_not_stop_the_run(tmp_path):
    code = (
        "import os, sys; home = sys.argv[1]; os.rmdir(os.getcwd()); sys.path[:] = [home, *sys.path[1:]]\n"
        "from plimsoll.run.contents import lines; lines.is_user_file('train.py')\n"
        "print(lines.Line('/a.py', 1, 'f').as_record()['file'])"
    )
    (tmp_path / "gone").mkdir()
    run = subprocess.run([sys.executable, "-c", code, HOME], cwd=tmp_path / "gone", capture_output=True, text=True)
    assert run.stdout == "/a.py\n", run.stderr


def test_the_end_waits_for_running_autograd_threads(tmp_path):
    def task(number, name, state):
        (tmp_path / str(number)).mkdir(exist_ok=True)
        (tmp_path / str(number) / "stat").write_text(f"{number} ({name}) {state} 1 1 1")

    def rest(seconds):
        return autograd_threads.wait(seconds, str(tmp_path))

    task(1, "python) R (", "R")
    assert rest(0), "no thread is running"
    task(2, "pt_autograd_0", "R")
    assert not rest(0.01)
    threading.Timer(0.05, task, (2, "pt_autograd_0", "S")).start()
    assert rest(60)
    task(3, "pt_autograd_1", "D")
    assert not rest(0.01)
    assert autograd_threads.wait(0, str(tmp_path / "nowhere"))
