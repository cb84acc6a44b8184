"""A proxy in front of a Redis server, as there are: a command that it does not pass on gets an
error, no answer, or the end of the connection. One command at a time.

usage: proxy.py SOCKET error|silence|end COMMAND…   (prints its port on 127.0.0.1)

COMMAND is not passed on: its first words, as in `info memory`; `eval-without-key` stands for that.
"""
import socket
import sys
import threading


def read_words(stream):
    count = stream.readline()
    if not count:
        return None
    words = []
    for _ in range(int(count[1:])):
        length = int(stream.readline()[1:])
        words.append(stream.read(length + 2)[:-2])
    return words


def read_reply(stream):
    line = stream.readline()
    if line[:1] == b"$" and int(line[1:]) >= 0:
        return line + stream.read(int(line[1:]) + 2)
    if line[:1] == b"*":
        return line + b"".join(read_reply(stream) for _ in range(int(line[1:])))
    return line


def is_refused(words, refused):
    # A command without a key leads to no server.
    if words[0].upper() == b"EVAL" and words[2] == b"0" and "eval-without-key" in refused:
        return True
    asked = b" ".join(words).decode(errors="replace").lower() + " "
    return any(asked.startswith(command + " ") for command in refused)


def serve(client, path, way, refused):
    server = socket.socket(socket.AF_UNIX)
    asked, answers = client.makefile("rb"), server.makefile("rb")
    try:
        server.connect(path)
        while words := read_words(asked):
            if is_refused(words, refused):
                if way == "end":
                    break
                if way == "silence":
                    while read_words(asked):
                        pass
                    break
                client.sendall(b"-ERR unknown command for this proxy\r\n")
                continue
            server.sendall(b"*%d\r\n" % len(words))
            for word in words:
                server.sendall(b"$%d\r\n%s\r\n" % (len(word), word))
            reply = read_reply(answers)
            if not reply:
                break
            client.sendall(reply)
        client.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    client.close()
    server.close()


def main():
    path, way, refused = sys.argv[1], sys.argv[2], sys.argv[3:]
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, path, way, refused), daemon=True).start()


main()
