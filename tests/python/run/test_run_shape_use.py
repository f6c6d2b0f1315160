"""Whether a read-back decides a shape, found from the source only. Comment `READ` marks the line that reads."""

import textwrap

import pytest
from plimsoll.run.values import shape_use

DECIDES = {
    "in the statement that reads it": "y = torch.zeros(int(n.item()) + 1)  # READ",
    "as the end of a slice": "y = x[: n.item()]  # READ",
    "as the end of a range": "for i in range(n.item()):  # READ\n    y = 1",
    "through a name": "n = int(mask.sum())  # READ\ny = torch.zeros(n)",
    "through a name, as a slice": "n = mask.sum().item()  # READ\nprint(n)\ny = x[:, :n]",
    "through a tuple": "rows, columns = x.tolist()  # READ\ny = x.expand(4, columns)",
    "through a tuple of values": "rows, columns = 4, int(x.max())  # READ\ny = x.view(columns, -1)",
    "through one of several names": "first = last = x.item()  # READ\ny = x.narrow(0, 0, last)",
    "through an attribute": "self.n = x.item()  # READ\ny = x.new_zeros(self.n, 3)",
    "through an element": "sizes[0] = x.item()  # READ\ny = torch.empty(sizes[0])",
    "through an element that only the run knows": "sizes[i] = x.item()  # READ\ny = torch.empty(sizes[k])",
    "through a key": "state['n'] = x.item()  # READ\ny = torch.empty(state['n'])",
    "through a list": "sizes.append(x.item())  # READ\ny = torch.empty(max(sizes))",
    "through arithmetic": "n = x.item()  # READ\nm = 8 * math.ceil(n / 8)\ny = torch.arange(m + 1)",
    "through a sum": "n = 4\nn += x.item()  # READ\ny = torch.zeros(n)",
    "a later sum": "n = x.item()  # READ\ntotal = 0\ntotal += n\ny = torch.zeros(total)",
    "by keyword": "n = x.item()  # READ\ny = torch.zeros(size=(n, 3), device='cuda')",
    "by star": "sizes = x.tolist()  # READ\ny = torch.zeros(*sizes)",
    "as sizes of parts": "sizes = x.tolist()  # READ\ny = torch.split(z, sizes)",
    "an element of a tensor on the host": "lengths = x.cpu()  # READ\ny = z[: lengths[0]]",
    "each in a loop": "for i, n in enumerate(x.tolist()):  # READ\n    y[i, :n] = 0",
    "each in a list": "sizes = x.tolist()  # READ\ny = [torch.zeros(n) for n in sizes]",
    "one of two lists": "sizes = x.tolist()  # READ\nfor name, n in zip(names, sizes):\n    y = torch.zeros(n)",
    "in the condition": "if (n := x.item()) > 3:  # READ\n    y = torch.zeros(n)",
    "in one branch": "n = 4\nif late:\n    n = x.item()  # READ\nelse:\n    n = 5\ny = torch.zeros(n)",
    "in the next turn": "n = 4\nfor _ in steps:\n    y = torch.zeros(n)\n    n = x.item()  # READ",
    "some turns later": "a = b = 1\nwhile True:\n    y = torch.zeros(b)\n    b = a\n    a = x.item()  # READ",
    "after an error": "try:\n    n = x.item()  # READ\nfinally:\n    y = torch.zeros(n)",
    "within": "with scope() as n, other():\n    n = x.item()  # READ\ny = torch.zeros(n)",
    "swapped": "a, b = x.item(), 4  # READ\na, b = b, a\ny = torch.zeros(b)",
    "a choice by it": "n = x.item()  # READ\ny = torch.zeros(8 if n > 3 else 4)",
    "through a function, in the place of a size": "n = x.item()  # READ\ny = torch.zeros(rounded_up(n))",
    "on one line": "n = x.item(); y = torch.zeros(n)  # READ",
    "in a function": "def f(x):\n    n = x.item()  # READ\n    return torch.zeros(n)",
    "in a match": "match kind:\n    case 1:\n        n = x.item()  # READ\ny = torch.zeros(n)",
    "over several lines": "n = int(\n    x.sum()  # READ\n)\ny = torch.zeros(\n    n,\n)",
    "a layer's": "n = x.max().item() + 1  # READ\nlayer = torch.nn.Embedding(n, 8)",
}

DOES_NOT = {
    "printed": "print(n.item())  # READ\ny = torch.zeros(4)",
    "a loss that is kept and printed": "value = loss.item()  # READ\nlosses.append(value)\nprint(losses[-10:], sum(losses))",
    "a loss that is added up": "total += loss.item() * x.shape[0]  # READ\nmean = total / len(x)\nprint(f'{mean:.3f}')",
    "a name that got another value": "n = x.item()  # READ\nprint(n)\nn = 8\ny = torch.zeros(n)",
    "an attribute of another value": "self.loss = x.item()  # READ\ny = torch.zeros(self.n)",
    "an attribute of another object": "self.n = x.item()  # READ\nself = other\ny = torch.zeros(self.n)",
    "an element by another key": "state['loss'] = x.item()  # READ\ny = torch.zeros(state['n'])",
    "a use before it": "y = torch.zeros(n)\nn = x.item()  # READ",
    "the shape of the tensor that was read": "y = x.cpu()  # READ\nz = torch.zeros(y.shape[0], y.size(1), len(y))",
    "data, not a size": "y = x.cpu()  # READ\nz = torch.reshape(y, (2, 4))\nw = F.pad(y, (0, 1))",
    "the fill value of a tensor": "n = x.item()  # READ\ny = torch.full((4,), n)\nz = F.pad(y, (0, 1), value=n)",
    "an index": "n = x.item()  # READ\ny = z[n]",
    "the number beside it": "for i, value in enumerate(x.tolist()):  # READ\n    print(value, y[i : i + 1])",
    "the other list": "for n, value in zip(sizes, x.tolist()):  # READ\n    y = torch.zeros(n)",
    "the other in a tuple": "loss, n = x.item(), 4  # READ\ny = torch.zeros(n)",
    "a branch of a condition": "if x.item() > 3:  # READ\n    y = torch.zeros(8)",
    "another read below the condition": "if n.item() > 3:  # READ\n    torch.zeros(int(m.item()))",
    "a name of another function": "def f(x):\n    n = x.item()  # READ\n\ndef g(n):\n    return torch.zeros(n)",
    "a name within another function": "n = x.item()  # READ\n\ndef g(n):\n    return torch.zeros(n)",
    "the result of a function": "scale = x.item()  # READ\nbatch = load(scale)\ny = torch.zeros(batch.rows)",
    "a name that is gone": "n = x.item()  # READ\ndel n\ny = torch.zeros(n)",
    "no Python": "n = x.item( # READ\n)) y = torch.zeros(n)",
}


def decides(tmp_path, code):
    path = tmp_path / "code.py"
    path.write_text(textwrap.dedent(code) + "\n")
    line = next(number for number, text in enumerate(code.splitlines(), 1) if "# READ" in text)
    return shape_use.read_decides_shape(str(path), line)


@pytest.mark.parametrize("code", DECIDES.values(), ids=DECIDES.keys())
def test_a_value_decides_a_shape(tmp_path, code):
    compile(code, "code.py", "exec")
    assert decides(tmp_path, code)


@pytest.mark.parametrize("code", DOES_NOT.values(), ids=DOES_NOT.keys())
def test_a_value_does_not_decide_a_shape(tmp_path, code):
    assert not decides(tmp_path, code)


def test_a_line_without_source_decides_nothing(tmp_path):
    assert not shape_use.read_decides_shape(str(tmp_path / "no_such.py"), 1)
    deep = "n = x.item()  # READ\ny = " + "-" * 5000 + "n"
    assert not decides(tmp_path, deep)


def test_each_line_is_analysed_once(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(shape_use, "_scope", lambda tree, line: looked.append(line) or tree.body)
    for _ in range(3):
        assert decides(tmp_path, DECIDES["through a name"])
    assert len(looked) == 1


def test_nested_loops_are_walked_a_bounded_number_of_times(tmp_path, monkeypatch):
    walked, walk = [], shape_use._Walk._statement
    monkeypatch.setattr(shape_use._Walk, "_statement", lambda self, *rest: walked.append(1) or walk(self, *rest))
    code = "".join("    " * depth + f"for i{depth} in x:\n" for depth in range(18))
    code += "    " * 18 + "n = x.item()  # READ\n"
    assert not decides(tmp_path, code)
    assert len(walked) < 500
