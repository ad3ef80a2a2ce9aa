"""Double precision unless KAMINO_JAX_X64=0, strict promotion, and a compilation cache shared by runs."""

import os
import pathlib
import tempfile

import jax

X64 = os.environ.get("KAMINO_JAX_X64", "1") != "0"
CACHE = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(pathlib.Path(tempfile.gettempdir()) / "kamino_jax_test_cache")

jax.config.update("jax_enable_x64", X64)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
