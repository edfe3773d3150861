"""Have a snapshot file diagnosed: drop it, see the same answer as the command line prints."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.logins import client_address
from apps.dashboard import numbers, uploads
from apps.dashboard.forms import UploadForm
from apps.dashboard.shell import etag_of, fragment, page, person, scope_for
from apps.diagnosis.models import Upload
from apps.diagnosis.selectors import upload_get, upload_list
from apps.diagnosis.services.uploads import upload_create
from apps.errors import ApplicationError

RECENT = 10
MIB = 1024**2


@require_http_methods(["GET", "HEAD", "POST"])
def upload_new(request: HttpRequest) -> HttpResponse:
    """Take a file and go to its answer; what is wrong with it is said beside the field."""
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    status = 200
    if request.method == "POST":
        made = _take(request, form)
        if made is not None:
            return redirect("dashboard:upload-answer", upload_id=made.pk)
        status = 422
    context = {
        "form": form,
        "recent": upload_list(user=person(request))[:RECENT],
        "cap": f"{settings.GANGDASH_UPLOAD_MAX_BYTES // MIB:,} MiB",
    }
    return page(request, "dashboard/upload.html", context, scope=scope_for(request), name="upload", status=status)


def _take(request: HttpRequest, form: UploadForm) -> Upload | None:
    if not form.is_valid():
        return None
    file: UploadedFile[bytes] = form.cleaned_data["file"]
    if (file.size or 0) > settings.GANGDASH_UPLOAD_MAX_BYTES:
        form.add_error("file", f"{file.name}: larger than {settings.GANGDASH_UPLOAD_MAX_BYTES // MIB:,} MiB")
        return None
    try:
        return upload_create(
            user=person(request),
            file_name=file.name or "snapshot",
            content=file.read(),
            as_of=numbers.parse_time(form.cleaned_data["as_of"]),
            address=client_address(request),
        )
    except ApplicationError as error:
        form.add_error("file", error.detail)
        return None


def _found(request: HttpRequest, upload_id: str) -> Upload:
    try:
        return upload_get(user=person(request), upload_id=upload_id)
    except (Upload.DoesNotExist, ValidationError) as error:
        raise Http404("No such upload is visible to you") from error


def _context(upload: Upload) -> dict[str, Any]:
    return {
        "upload": upload,
        "answer": uploads.answer_of(upload.document) if upload.document else None,
        "etag_upload": etag_of(upload.pk, upload.state, upload.attempts),
    }


@require_safe
def upload_answer(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Show what one file says."""
    context = _context(_found(request, upload_id))
    return page(request, "dashboard/upload_answer.html", context, scope=scope_for(request), name="upload")


@require_safe
def upload_fragment(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Answer how far a waiting file is."""
    context = _context(_found(request, upload_id))
    return fragment(request, "dashboard/_upload_answer.html", lambda: context, etag=context["etag_upload"])


@require_safe
def upload_document(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Hand out document one as the command line prints it."""
    upload = _found(request, upload_id)
    if not upload.document:
        raise Http404("This file has no answer")
    return HttpResponse(upload.document, content_type="application/json")
