"""What Linux has and another system has not: it is taken away, and the other branch has to do (docs/stability.md)."""

import os

import pytest
from commands import printed

# what is taken away before the package is imported, and what has to be true then
WITHOUT = {
    "fcntl: a byte is locked by msvcrt": """
        import types
        attempts = []
        def locking(number, mode, size):
            attempts.append((mode, size))
            if len(attempts) < 3:
                raise PermissionError("another process has it")
        sys.modules |= {"fcntl": None, "msvcrt": types.SimpleNamespace(LK_NBLCK=2, locking=locking)}
        sys.platform = "win32"
        from fastndcg.kernels.compile import kernel_cache
        assert kernel_cache.folder().is_relative_to(os.environ["NUMBA_CACHE_DIR"])
        with kernel_cache.alone("driver") as lock:
            kernel_cache.note_kept(lock)
        assert attempts == [(2, 1)] * 3 and kernel_cache.is_kept("driver"), attempts
    """,
    "register_at_fork: nothing forks": """
        del os.register_at_fork
        import fastndcg as fn
        assert fn.ndcg([1, 0], [0.1, 0.9], group=[2], k=1).tolist() == [0.0]
    """,
    "sched_getaffinity: all processors": """
        del os.sched_getaffinity
        os.cpu_count = lambda: 7
        from fastndcg.common.threads import processors
        assert processors() == 7
    """,
    "owners: folders are the user's by their place": """
        del os.getuid, os.geteuid
        import pathlib
        from fastndcg.kernels.compile import kernel_cache
        path = kernel_cache.folder()
        kernel_cache.make(path)
        path.chmod(0o777)
        assert kernel_cache.folder() == path
    """,
    "UTF-8 and line feeds: CRLF, and a code page for the terminal": r"""
        import io, pathlib
        from fastndcg.__main__ import main
        path = pathlib.Path(os.environ["NUMBA_CACHE_DIR"], "größe 東.csv")
        path.write_bytes("qid,label,score\r\n東,1,0.5\r\nß,0,1\r\nß,1,2\r\n".encode())
        for encoding in ("cp1252", "cp932"):
            sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
            for words in ("score", "explain --id 東"):
                command, *rest = words.split()
                sys.argv = ["fastndcg", command, str(path), *rest, "-m", "nDCG@10"]
                try:
                    main()
                except SystemExit as end:
                    assert end.code == 0, end.code
    """,
}


@pytest.mark.skipif(os.name != "posix", reason="there is nothing to take away")
@pytest.mark.parametrize("program", WITHOUT.values(), ids=WITHOUT)
def test_without_it(program, tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "TMPDIR": str(tmp_path), "FASTNDCG_KERNELS": "plain"}
    # these look at the system for themselves
    before = "import os, sys, tempfile, subprocess, numpy, pyarrow\n"
    printed(before + "if True:\n" + program, **environment)
