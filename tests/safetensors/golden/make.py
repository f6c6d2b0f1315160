"""Writes the golden files beside it with Hugging Face's package: `pip install safetensors==0.8.0 numpy ml_dtypes`."""

import os

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

FOLDER = os.path.dirname(os.path.abspath(__file__))
DTYPES = [
    np.bool_,
    np.uint8,
    np.int8,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fn,
    np.int16,
    np.uint16,
    np.float16,
    ml_dtypes.bfloat16,
    np.int32,
    np.uint32,
    np.float32,
    np.float64,
    np.int64,
    np.uint64,
]


def tensor(number: int, dtype: type, shape: tuple) -> np.ndarray:
    """Bytes that count up from `number`: the test makes the same. Truth values are 0 and 1."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = (np.arange(count) + number) % (2 if dtype is np.bool_ else 256)
    return np.frombuffer(raw.astype(np.uint8).tobytes(), dtype=dtype).reshape(shape)


tensors = {f"tensor.{i:02}": tensor(i, dtype, (2, 3)) for i, dtype in enumerate(DTYPES)}
tensors["scalar"] = tensor(100, np.float32, ())
tensors["empty"] = tensor(0, ml_dtypes.bfloat16, (0, 5))
tensors['naïve "name"\n\t\x01\x7f/\\'] = tensor(101, np.int8, (3,))
save_file(tensors, os.path.join(FOLDER, "every_dtype.safetensors"), metadata={"format": "pt ✓"})
save_file({}, os.path.join(FOLDER, "no_tensors.safetensors"))
