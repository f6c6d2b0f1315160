"""Writes a tiny tokenizer and a tiny training text, for torchtitan on a machine without a network.

    python examples/torchtitan/write_assets.py FOLDER

Give FOLDER to torchtitan as `--model.hf_assets_path`, and FOLDER/text as `--training.dataset_path`. Memory depends on
the amount of text and not on its content, and the model has its own vocabulary size. `FOLDER/tokenizer.model` is for
torchtitan 0.1, where models take the vocabulary size from the tokenizer: it has the same number of words as Llama 3's
tokenizer.
"""

import base64
import json
import sys
from pathlib import Path

WORDS = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
DOCUMENTS, WORDS_OF_EACH = 1024, 1024  # at least one document for each data-parallel rank
LLAMA3_WORDS = 128_000  # torchtitan 0.1 adds 256 special tokens itself


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
    """All single bytes, which tiktoken needs, then arbitrary words to fill the vocabulary."""
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
