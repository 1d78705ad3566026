"""What tests of earlier versions' files share: unpacking what tests/golden/earlier has."""

import hashlib
import json
import os
import re
import tarfile

from program import GOLDEN, ProgramTest


class UnpackedTest(ProgramTest):
    """Times of contents are as they were. Inode numbers, folders and the times at which inodes changed cannot be, so the
    records get those of the copy that was unpacked here. Nothing else is changed in them."""

    def unpack(self, *beginnings):
        with tarfile.open(GOLDEN / "earlier/made.tar.xz") as tar:
            self.made = json.load(tar.extractfile("made.json"))
            names = [name for name in self.made["stamps"] if name.startswith(beginnings)]
            for name in names:
                tar.extract(name, self.folder)
        inodes = {}
        for name in reversed(names):
            inode, time = self.made["stamps"][name]
            os.utime(self.path(name), ns=(time, time), follow_symlinks=False)
            inodes[inode] = os.lstat(self.path(name)).st_ino
        for record in names:
            if record.endswith((".tessera/undo/changes", ".tessera/batch/journal", ".tessera/unfinished.json", "job.json",
                                "v2.json")):
                self.adapt(self.folder / record, inodes)

    def adapt(self, record, inodes):
        record.touch()  # after all that was unpacked
        known = lambda found: found[1] + str(inodes.get(int(found[2]), 0))  # 0: of a file that had gone
        text = re.sub(r'("inode": ?)(\d+)', known, record.read_text())
        text = text.replace(self.made["folder"], str(self.folder))
        text = re.sub(r'"since": \d+', f'"since": {record.stat().st_ctime_ns}', text)  # of a job's sources
        lines, at, sum_of_them = text.rpartition('{"committed":')
        if at:
            sha256 = hashlib.sha256(lines.encode()).hexdigest()
            text = lines + at + re.sub(r'"sha256":"\w+"', f'"sha256":"{sha256}"', sum_of_them)
        record.write_text(text)
