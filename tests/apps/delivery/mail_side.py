"""A real SMTP server on this machine that refuses, hangs up or takes mail as it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailSide:
    """``replies`` overrule the usual answer to a command; an empty one hangs up. Per recipient by its address."""

    port: int
    replies: dict[str, str] = field(default_factory=dict)
    mails: list[bytes] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def mail(self) -> EmailMessage:
        found = message_from_bytes(self.mails[-1], policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found


@contextmanager
def mail_side() -> Iterator[MailSide]:
    listener = socket.create_server(("127.0.0.1", 0))
    side = MailSide(listener.getsockname()[1])
    threading.Thread(target=_serve, args=(listener, side), daemon=True).start()
    try:
        yield side
    finally:
        listener.close()


def _serve(listener: socket.socket, side: MailSide) -> None:
    while True:
        try:
            connection, _address = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rwb") as stream:
            connection.settimeout(5)
            try:
                _talk(stream, side)
            except OSError:
                continue


def _talk(stream: object, side: MailSide) -> None:
    say, hear = stream.write, stream.readline  # type: ignore[attr-defined]

    def answer(text: str) -> None:
        say(text.encode() + b"\r\n")
        stream.flush()  # type: ignore[attr-defined]

    answer(side.replies.get("CONNECT", "220 mail.test"))
    while line := hear().decode().strip():
        side.commands.append(line)
        reply = _reply(line, side)
        if not reply:
            return
        answer(reply)
        if reply.startswith("354"):
            content = b""
            while (part := hear()) != b".\r\n":
                content += part
            final = side.replies.get("END", "250 taken")
            if final.startswith("250") or not final:
                side.mails.append(content)
            if not final:
                return
            answer(final)


def _reply(line: str, side: MailSide) -> str:
    word = line.split(" ", maxsplit=1)[0].upper()
    usual = {"EHLO": "250-mail.test\r\n250 AUTH PLAIN", "DATA": "354 go on", "QUIT": "221 bye", "AUTH": "235 in"}
    for address, reply in side.replies.items():
        if word == "RCPT" and address in line:
            return reply
    return side.replies.get(word, usual.get(word, "250 ok"))
