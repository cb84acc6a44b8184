"""A TLS server that shakes hands, says which server name it was asked for, and hangs up.

usage: sni.py CERTIFICATE KEY [old]   (prints the port that it listens on; old: TLS 1.1 at most)
"""
import socket
import ssl
import sys


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if "old" in sys.argv:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    context.sni_callback = lambda _socket, name, _context: print(
        f"asked for {name or 'nothing'}", flush=True
    )
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()


main()
