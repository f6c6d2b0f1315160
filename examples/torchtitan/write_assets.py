"""Writes a tokenizer and a text to train on, both tiny, for torchtitan on a machine that can download neither.

    python examples/torchtitan/write_assets.py FOLDER

FOLDER is then what torchtitan's `--model.hf_assets_path` wants, FOLDER/text what `--training.dataset_path` wants.
Memory does not depend on what is read, only on how much of it: any text will do, and the size of the vocabulary is the
model's own. `FOLDER/tokenizer.model` is for torchtitan 0.1, whose models take theirs from the tokenizer: it has as many
words as Llama 3's.
"""

import base64
import json
import sys
from pathlib import Path

WORDS = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
DOCUMENTS, WORDS_OF_EACH = 1024, 1024  # at least one document for every data-parallel rank
LLAMA3_WORDS = 128_000  # and 256 special ones, which torchtitan 0.1 adds itself


def tokenizer() -> dict:
    special = ["<|begin_of_text|>", "<|end_of_text|>"]
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": token, "special": True}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            for i, token in enumerate(special)
        ],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: i for i, word in enumerate(special + WORDS)},
            "unk_token": WORDS[0],
        },
    }


def documents() -> list:
    line = " ".join(WORDS[i % len(WORDS)] for i in range(WORDS_OF_EACH))
    return [{"text": line}] * DOCUMENTS


def tiktoken_ranks() -> str:
    """All single bytes, as tiktoken needs them, then whatever fills the vocabulary."""
    words = [bytes([i]) for i in range(256)] + [b"%06d" % i for i in range(LLAMA3_WORDS - 256)]
    return "".join(f"{base64.b64encode(word).decode()} {rank}\n" for rank, word in enumerate(words))


def write(folder: Path) -> None:
    (folder / "text").mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"})
    )
    (folder / "tokenizer.model").write_text(tiktoken_ranks())
    (folder / "text" / "data.json").write_text("".join(json.dumps(document) + "\n" for document in documents()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
