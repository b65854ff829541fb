"""An endpoint behind TLS: certificates are checked, connections kept and cut as without."""

from __future__ import annotations

import datetime
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from opro.llms.faults import Fault
from opro.llms.openai_chat import OpenAILLM
from opro.testing.outcomes import chat_body
from tests.suites.llm_suite import ask

cryptography = pytest.importorskip("cryptography")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if sent["messages"][0]["content"] == "hang":
            self.server.hung.set()
            self.server.done.wait(10)
            self.close_connection = True
            return
        body = json.dumps(chat_body(str(self.client_address[1]))).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        return  # a client that doesn't trust us hangs up; nothing to print


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with a key and a self-signed certificate for `localhost`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.hung, server.done = threading.Event(), threading.Event()
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.done.set()
        server.shutdown()
        thread.join()


def llm_at(server: Server, host: str = "localhost", timeout: float = 5.0) -> OpenAILLM:
    url = f"https://{host}:{server.server_address[1]}/v1"
    return OpenAILLM(model="m", base_url=url, timeout=timeout)


def test_llm_tls_connection_is_kept(
    secure: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    llm = llm_at(secure)
    assert len({llm.send(ask()).text for _ in range(5)}) == 1  # the reply is the client's port
    llm.close()


def test_llm_tls_wrong_certificate(
    secure: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host, trusted, what in (("localhost", False, "self"), ("127.0.0.1", True, "mismatch")):
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        llm = llm_at(secure, host)
        with pytest.raises(Fault, match=what) as info:
            llm.send(ask())
        assert info.value.kind == "no_connection"
        llm.close()


def test_llm_tls_timeout_and_close(
    secure: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    llm = llm_at(secure, timeout=0.3)
    with pytest.raises(Fault) as info:
        llm.send(ask("hang"))
    assert info.value.kind == "timeout"
    llm.close()
    llm, kinds = llm_at(secure, timeout=60.0), []

    def send() -> None:
        with pytest.raises(Fault) as info:
            llm.send(ask("hang"))
        kinds.append(info.value.kind)

    secure.hung.clear()
    llm.start()
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    assert secure.hung.wait(5)
    begin = time.monotonic()
    llm.close()
    thread.join(5)
    assert kinds == ["closed"] and time.monotonic() - begin < 1.0
