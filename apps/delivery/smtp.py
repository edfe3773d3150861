"""Hands one mail to the mail server that the settings name, and tells how far it came.

Speaks SMTP itself instead of through Django's backend, which keeps to itself which recipients were refused and at
which step it broke. Django still writes the mail.
"""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Sequence
from email.mime.base import MIMEBase

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.utils import DNS_NAME

from apps.delivery.choices import StopScope
from apps.delivery.outcomes import Outcome, Verdict, of_mail_error
from apps.delivery.render_mail import Mail


def mail_domain() -> str:
    """Return the domain of what mails are from."""
    return str(settings.DEFAULT_FROM_EMAIL).rpartition("@")[2].rstrip("> ") or "localhost"


def mail_send(mail: Mail, *, recipients: Sequence[str]) -> Outcome:
    """Send a mail to all recipients; those that are refused while others are not stand in the outcome's detail."""
    host = settings.EMAIL_HOST
    if not host:
        return Outcome(Verdict.NEVER, "No mail server is set; an operator sets GANGDASH_SMTP_HOST", StopScope.CHANNEL)
    content = _content(mail, recipients).message().as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    try:
        server = _connection(host)
    except (smtplib.SMTPException, OSError) as error:
        return of_mail_error(error, host=host, is_handed_over=False)
    try:
        refused = server.sendmail(str(settings.DEFAULT_FROM_EMAIL), list(recipients), content)
    except (smtplib.SMTPException, OSError) as error:
        return of_mail_error(error, host=host, is_handed_over=True)
    finally:
        with contextlib.suppress(smtplib.SMTPException, OSError):
            server.quit()
    return Outcome(Verdict.SENT, f"refused for {', '.join(sorted(refused))}" if refused else "")


def _connection(host: str) -> smtplib.SMTP:
    """Return a connection with TLS and login as the settings ask for."""
    context = ssl.create_default_context()
    timeout, port, name = settings.EMAIL_TIMEOUT, settings.EMAIL_PORT, DNS_NAME.get_fqdn()
    if settings.EMAIL_USE_SSL:
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, name, timeout=timeout, context=context)
    else:
        server = smtplib.SMTP(host, port, name, timeout=timeout)
    try:
        if settings.EMAIL_USE_TLS:
            server.starttls(context=context)
        if settings.EMAIL_HOST_USER:
            server.login(settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD)
    except (smtplib.SMTPException, OSError):
        server.close()
        raise
    return server


def _content(mail: Mail, recipients: Sequence[str]) -> EmailMultiAlternatives:
    headers = {"Message-ID": mail.message_id, "Auto-Submitted": "auto-generated"}
    if mail.follows_id:
        headers |= {"In-Reply-To": mail.follows_id, "References": mail.follows_id}
    content = EmailMultiAlternatives(mail.subject, mail.text, None, list(recipients), headers=headers)
    content.attach_alternative(mail.html, "text/html")
    for file in mail.attachments:
        content.attach(file.name, _as_its_type(file.content, file.content_type), file.content_type)
    return content


def _as_its_type(content: bytes, content_type: str) -> str | bytes | MIMEBase:
    """Return text for text types, as Django wants it."""
    return content.decode("utf-8", "replace") if content_type.startswith("text/") else content
