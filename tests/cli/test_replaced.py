"""Commands beside `copy --overwrite` and `snapshot restore` of the same path: it led to an array before and does after,
and no command ever finds that nothing is there. `TESSERA_REPLACED_ROUNDS` replaces it more often."""

import os
import subprocess
import threading

import numpy as np

import program
from program import PROGRAM

ROUNDS = int(os.environ.get("TESSERA_REPLACED_ROUNDS", "6"))


class Replaced(program.ProgramTest):
    READERS = (["info", "d"], ["info", "d", "--json"], ["get", "d", "0:3, 0:3"], ["stats", "d"], ["digest", "d"],
               ["attrs", "d"], ["attrs", "d", "get", "made"], ["tree", "d"], ["verify", "d"], ["diff", "d", "d"],
               ["set", "d", "0, 0", "3"], ["attrs", "d", "set", "more", "1"], ["repair", "d"], ["get", "g/x", "0, 0"],
               ["info", "g"], ["tree", "g"])

    def test_whoever_looks_finds_an_array(self):
        for number, form in (1, "v2"), (2, "v3"), (3, "zmeta"):
            self.save("values.npy", np.full((60, 50), number, "<i4"))
            self.tessera("import", "values.npy", f"s{number}", "--format", form, "--chunks", "10,10", "--quiet")
            self.tessera("attrs", f"s{number}", "set", "made", str(number))
        self.tessera("copy", "s1", "d", "--quiet")
        self.tessera("snapshot", "d", "create", "kept", "--quiet")
        self.tessera("group", "g", "--format", "v3", "--quiet")
        self.tessera("copy", "s2", "g/x", "--quiet")
        self.tessera("snapshot", "g", "create", "kept", "--quiet")
        over = threading.Event()
        failures = []
        # Two at a time: more would only wait for the machine.
        turns = [self.READERS[n::2] for n in range(2)]
        readers = [threading.Thread(target=self.use, args=(mine, failures)) for mine in turns]
        replacing = threading.Thread(target=self.replace, args=(over, failures))
        replacing.start()
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        over.set()
        replacing.join()
        self.assertEqual(failures, [])

    def use(self, commands, failures):
        for _ in range(ROUNDS):
            for words in commands:
                self.run_once(words, failures)

    def run_once(self, words, failures):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=120)
        plain = "a plain directory" in done.stdout or "(no arrays)" in done.stdout
        differs = words[0] == "diff" and done.returncode == 1  # two openings of one path may see two versions
        if plain or not (done.returncode == 0 or differs):
            failures.append(f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")

    def replace(self, over, failures):
        number = 0
        while not over.is_set():
            number += 1
            for words in (["copy", f"s{number % 3 + 1}", "d", "--overwrite"], ["snapshot", "d", "restore", "kept"],
                          ["snapshot", "g", "restore", "kept"], ["copy", "s2", "g/x", "--overwrite"]):
                done = subprocess.run([PROGRAM, *words, "--quiet", "--durability", "none"], capture_output=True,
                                      text=True, cwd=self.folder, timeout=120)
                if done.returncode != 0:
                    failures.append(f"{words}: exit {done.returncode}: {done.stderr}")


if __name__ == "__main__":
    program.main()
