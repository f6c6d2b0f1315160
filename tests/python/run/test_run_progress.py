"""The progress line on a terminal: the text that is written, and the screen at the end."""

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from plimsoll.amounts import text_of
from plimsoll.run.observe.progress import Progress

# A step takes longer than the interval of the line, and the printed text is shorter than the line.
SCRIPT = """
    import sys, time, torch
    model = torch.nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        model(torch.randn(1024, 8192, device="cuda")).sum().backward()
        optimizer.step()
        print("loss", step, flush=True)
        time.sleep(0.15)
        held = torch.empty(step << 28, device="cuda")
"""
LINE = re.compile(r"step (\d+)   peak: active ([\d.]+ [KMGT]?i?B), reserved ([\d.]+ [KMGT]?i?B)")
PART = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\x1b]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """The rows on a screen that knows carriage returns, new lines, erasing to the end of a line, and colours."""

    def __init__(self, columns):
        self.columns, self.rows, self.row, self.column = columns, [""], 0, 0

    def feed(self, text):
        for part in PART.findall(text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self._down()
            elif part == "\x1b[K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif COLOUR.fullmatch(part):
                pass
            else:
                assert not part.startswith("\x1b"), f"a control sequence that this terminal does not know: {part!r}"
                self._put(part)

    def _down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")

    def _put(self, character):
        if self.column == self.columns:
            self.column = 0
            self._down()
        row = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
        self.column += 1


class Shown:
    """A run on a terminal: all written text, and the rows at the end."""

    def __init__(self, written, columns, report):
        self.written, self.report = written, report
        terminal = Terminal(columns)
        terminal.feed(written)
        self.rows = [row.rstrip() for row in terminal.rows]


@pytest.fixture
def on_terminal(plimsoll_command, tmp_path):
    """`on_terminal(*arguments, piped="stderr")` runs `plimsoll run` with each stream but the piped one on a terminal."""

    def run(*arguments, columns=100, piped=None):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        json_file = tmp_path / "report.json"
        streams = {name: subprocess.PIPE if name == piped else theirs for name in ("stdout", "stderr")}
        command = [plimsoll_command, "run", "--json", str(json_file), *arguments]
        process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, **streams)
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # Linux reports the end of a terminal that no process has open
                break
            if not piece:
                break
            written += piece
        os.close(ours)
        rest = process.communicate(timeout=60)[0 if piped == "stdout" else 1] or b""
        assert process.returncode == 0, (written + rest).decode()
        report = json.loads(json_file.read_text())
        return Shown(written.decode(), columns, report), rest.decode()

    return run


def test_a_terminal_shows_each_step_with_its_peaks_and_at_the_end_only_the_report(on_terminal, script):
    shown, _ = on_terminal(script(SCRIPT))
    drawn = LINE.findall(shown.written)
    assert [int(step) for step, *_ in drawn] == [1, 2, 3]
    steps = shown.report["steps"]
    for book, column in (("active", 1), ("reserved", 2)):
        peaks = [step[f"{book}_peak_bytes"] for step in steps]
        assert [line[column] for line in drawn] == [text_of(max(peaks[: n + 1])) for n in range(3)]
        assert peaks[0] < peaks[2], "the figures of the line are to change"
    assert LINE.search("\n".join(shown.rows)) is None
    begin = shown.rows.index("loss 0")
    assert shown.rows[begin : begin + 4] == ["loss 0", "loss 1", "loss 2", ""]
    assert shown.rows[begin + 4].startswith("Fits: ")


def test_a_narrow_terminal_shows_only_the_report_at_the_end_too(on_terminal, script):
    shown, _ = on_terminal(script(SCRIPT), columns=30)
    assert "step 2" in shown.written
    begin = shown.rows.index("loss 0")
    assert shown.rows[begin : begin + 4] == ["loss 0", "loss 1", "loss 2", ""]


@pytest.mark.parametrize("options, piped", [(["--quiet"], None), ([], "stderr")])
def test_no_progress_is_shown_with_quiet_or_without_a_terminal_on_stderr(on_terminal, script, options, piped):
    shown, rest = on_terminal(*options, script(SCRIPT), piped=piped)
    assert "loss 2" in shown.rows
    assert "peak: active" not in shown.written + rest
    assert "\x1b" not in rest


class Tty(io.StringIO):
    """A stream to a terminal of unknown width."""

    def isatty(self):
        return True

    def fileno(self):
        raise OSError("no file")


def test_printing_erases_the_line_and_restores_the_stream():
    stream = Tty()
    progress = Progress(True, stream)
    progress.show(1, 1 << 30, 2 << 30)
    assert "write" in vars(stream)
    print("loss", 0, file=stream)
    assert "write" not in vars(stream)
    print("loss", 1, file=stream)
    terminal = Terminal(100)
    terminal.feed(stream.getvalue().replace("\n", "\r\n"))
    assert LINE.findall(stream.getvalue()) == [("1", "1.00 GiB", "2.00 GiB")]
    assert terminal.rows == ["loss 0", "loss 1", ""]


def test_a_forked_child_neither_draws_nor_erases():
    stream = Tty()
    progress = Progress(True, stream)
    progress.show(1, 1 << 30, 2 << 30)
    drawn = stream.getvalue()
    progress.turn_off()
    progress.show(2, 1 << 30, 2 << 30)
    progress.clear()
    assert stream.getvalue() == drawn and "write" not in vars(stream)


def test_a_write_method_that_the_script_replaced_stays():
    stream, written = Tty(), []
    stream.write = written.append
    progress = Progress(True, stream)
    progress.show(1, 1 << 30, 2 << 30)
    assert stream.write == written.append
    progress.clear()
    assert stream.write == written.append and LINE.search(written[0])


def test_a_terminal_without_control_sequences_gets_no_line(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = Tty()
    Progress(True, stream).show(1, 1 << 30, 2 << 30)
    assert stream.getvalue() == ""
