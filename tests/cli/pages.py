"""Runs the documentation: the code blocks of a page, one after another in an empty folder, as its reader would.

What a block is stands behind its fence:

    sh                commands, which must all succeed
    console           commands after "$ " (and "> " for further lines), and just what they print; "..." is anything
    python, pycon     run in one namespace for the whole page; of pycon the output is compared
    LANGUAGE file=F   an excerpt of the file F, which the build or another test runs; excerpts stand in the file's order
    cpp               fragments that compile (tests/misuse/examples.py)
    text, json        not run: diagrams, formats, and commands that build or install
"""
import contextlib
import doctest
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import typing
import unittest
import warnings

from program import EXAMPLES, NUMPY_1, PROGRAM

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
MODULE = os.environ.get("TESSERA_MODULE")
DOCS = SOURCE / "tools" / "docs"
LANGUAGES = ("sh", "console", "python", "pycon")
NOT_RUN = ("cpp", "text", "json")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Block(typing.NamedTuple):
    language: str
    file: str  # the file that it is an excerpt of, or ""
    text: str
    line: int  # of its first line


def blocks(text):
    """The code blocks of a page, in order."""
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        language, _, file = found[1].partition(" file=")
        yield Block(language, file, found[2], text[:found.start()].count("\n") + 2)


def prose(text):
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def steps(transcript):
    """(command, output) of each command of a transcript."""
    for part in re.split(r"(?m)^\$ ", transcript)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1
        while count < len(lines) and lines[count].startswith("> "):
            count += 1
        yield lines[0] + "".join(line[2:] for line in lines[1:count]), "".join(lines[count:])


class PageRun:
    """One page in one folder. Skips the test where a block takes what is not installed."""

    def __init__(self, test, page, folder, languages=LANGUAGES):
        self.test, self.page, self.folder, self.languages = test, pathlib.Path(page), pathlib.Path(folder), languages
        # A module, so that functions of a page can be sent to other processes.
        sys.modules["page"] = module = types.ModuleType("page")
        self.namespace = vars(module)
        self.printed = ""  # by Python
        self.skipped = False  # whether it ended before its last block
        tools = pathlib.Path(tempfile.mkdtemp(prefix="tessera-bin-"))
        test.addCleanup(shutil.rmtree, tools, ignore_errors=True)
        (tools / "tessera").symlink_to(PROGRAM)
        (tools / "python3").symlink_to(sys.executable)
        path = os.pathsep.join(filter(None, (MODULE, os.environ.get("PYTHONPATH"))))
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": path}

    def run(self):
        for data in [*EXAMPLES.glob("*.npz"), *EXAMPLES.glob("*.nc")]:
            shutil.copy(data, self.folder)
        text = self.page.read_text()
        for block in blocks(text):
            where = f"{self.page.name}:{block.line}"
            if block.language not in LANGUAGES + NOT_RUN:
                self.test.fail(f"{where}: a block of {block.language!r}; tests/cli/pages.py lists what there is")
            if block.file or block.language not in self.languages:
                continue
            with self.test.subTest(where):
                self.skipped = True
                getattr(self, block.language)(block, where)
                self.skipped = False
            if self.skipped:
                break  # or failed: what follows may build on it
        return self

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300, env=self.environment, check=False)

    def sh(self, block, where):
        done = self.shell("set -e\n" + block.text)
        missing = re.search(r"ModuleNotFoundError.*|no PNG here.*|libpng-dev.*", done.stdout)
        if done.returncode and missing:
            self.test.skipTest(f"{where}: {missing[0]}")
        self.test.assertEqual(done.returncode, 0, f"{where}\n{done.stdout}")

    def console(self, block, where):
        for command, wanted in steps(block.text):
            done = self.shell(command)
            # An error is as good as what else is shown, but only where it is.
            self.test.assertTrue(done.returncode in (0, 1) or wanted.startswith("tessera: "),
                                 f"{where}: {command}{done.stdout}")
            pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
            self.test.assertTrue(re.fullmatch(pattern, done.stdout, re.DOTALL),
                                 f"{where}: {command}prints\n{done.stdout}and not\n{wanted}")

    def python(self, block, where):
        with self.in_folder(), contextlib.redirect_stdout(io.StringIO()) as printed:
            # Errors name the page and its line.
            exec(compile("\n" * (block.line - 1) + block.text, str(self.page), "exec"), self.namespace)  # noqa: S102
        self.printed += printed.getvalue()

    def pycon(self, block, where):
        if "zarr_view(" in block.text and not NUMPY_1:
            return  # for zarr-python 2, which lives beside NumPy 1
        with self.in_folder():
            test = doctest.DocTestParser().get_doctest(block.text, {}, where, str(self.page), block.line - 1)
            test.globs = self.namespace
            failed = doctest.DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False).failed
        self.test.assertEqual(failed, 0, where)

    @contextlib.contextmanager
    def in_folder(self):
        if MODULE is None:
            self.test.skipTest("the Python module was not built")
        if MODULE not in sys.path:
            sys.path.insert(0, MODULE)
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # json.load(open(...)) reads well
                yield
        except ModuleNotFoundError as error:
            raise unittest.SkipTest(str(error)) from error
        finally:
            os.chdir(before)
