"""The types of NumPy arrays in annotations, each named after its dtype.

Knows dtypes; knows nothing of shapes or of what the elements mean: the docstrings that use a type say that.
"""

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Bytes = U8  # data to be parsed, rather than numbers
