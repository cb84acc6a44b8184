"""ending.py PIDFILE CMD...: how a program really ended, which a shell's $? cannot tell from an exit
code above 128.

Runs CMD in a session of its own, without a controlling terminal, and writes its pid to PIDFILE. The
last line on stdout is `exit N` or `signal N`, with ` core` behind it when the program left one. CMD
does not outlive this process; TERM is handed on to it.
"""

import os
import signal
import subprocess
import sys

pid_file, command = sys.argv[1], sys.argv[2:]
child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: os.kill(child.pid, signal.SIGTERM))
with open(pid_file + ".new", "w") as file:
    file.write(f"{child.pid}\n")
os.rename(pid_file + ".new", pid_file)

_, status = os.waitpid(child.pid, 0)
if os.WIFSIGNALED(status):
    print("signal", os.WTERMSIG(status), *(["core"] if os.WCOREDUMP(status) else []))
else:
    print("exit", os.WEXITSTATUS(status))
