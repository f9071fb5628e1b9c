"""What Aider does with git in one turn that changes files: prints how many milliseconds it took.

Run by Aider's own Python in the repository's top, with the paths that the turn changes; the first of
them exist. Its questions to a model are left out, so the messages are given.
"""

import os
import sys
import time

from aider.io import InputOutput
from aider.repo import GitRepo

paths = sys.argv[1:]
devnull = open(os.devnull, "w")
io = InputOutput(pretty=False, yes=True, fancy_input=False, output=devnull)
sys.stdout, stdout = devnull, sys.stdout

start = time.perf_counter()
repo = GitRepo(io, [], None, git_commit_verify=False)
repo.get_tracked_files()
dirty = [path for path in paths if repo.path_in_repo(path) and repo.is_dirty(path)]
for path in paths:
    repo.git_ignored_file(path)
if dirty:
    repo.commit(fnames=dirty, message="dirty")
took = time.perf_counter() - start

for path in paths:
    with open(path, "a") as file:
        file.write(f"{time.time()}\n")

start = time.perf_counter()
repo.commit(fnames=paths, message="turn", aider_edits=True)
took += time.perf_counter() - start
print(took * 1000, file=stdout)
