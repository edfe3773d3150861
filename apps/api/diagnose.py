"""/diagnose: hand in a snapshot file, get document one; large files are answered by a worker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any, ClassVar

from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.urls import reverse
from django.utils.datastructures import MultiValueDict
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser, DataAndFiles, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.choices import TokenScope
from apps.api.views import PrivateView, client_address, plain
from apps.diagnosis.choices import UploadState
from apps.diagnosis.models import Upload
from apps.diagnosis.selectors import upload_get
from apps.diagnosis.services.uploads import upload_create
from apps.errors import ApplicationError

CHUNK = 1024 * 1024
DOCUMENT = {"$ref": "#/components/schemas/Diagnosis"}


class FileParser(BaseParser):
    """Takes the body itself as the file, whatever its type says: files are told by content."""

    media_type = "*/*"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> DataAndFiles[Any, Any]:
        content = b"".join(_limited(iter(lambda: stream.read(CHUNK), b"")))
        return DataAndFiles({}, MultiValueDict({"file": [SimpleUploadedFile("snapshot", content)]}))


class UploadQuery(serializers.Serializer[Any]):
    """How to read the file."""

    as_of = serializers.DateTimeField(required=False, help_text="The moment it is for, where the file does not say.")
    name = serializers.CharField(max_length=255, required=False, help_text="Shown in the answer and in errors.")


class UploadSerializer(serializers.Serializer[Upload]):
    """How far an upload is; ``diagnosis`` is document one once the state is done."""

    id = serializers.UUIDField()
    file_name = serializers.CharField()
    state = serializers.ChoiceField(choices=UploadState.choices)
    detail = serializers.CharField(help_text="Why there is no answer, where it failed.")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    diagnosis = serializers.SerializerMethodField()

    @extend_schema_field({"oneOf": [DOCUMENT, {"type": "null"}]})
    def get_diagnosis(self, upload: Upload) -> Any:
        return json.loads(upload.document) if upload.document else None


class DiagnoseView(PrivateView):
    """Diagnoses a snapshot file: a KAI snapshot or a kubectl List dump, as it is, gzipped or zipped."""

    token_scope: ClassVar[TokenScope | None] = TokenScope.DIAGNOSE
    throttle_scope = "diagnose"
    parser_classes = (MultiPartParser, FileParser)

    @extend_schema(
        operation_id="diagnose_create",
        parameters=[UploadQuery],
        request={
            "application/octet-stream": OpenApiTypes.BINARY,
            "multipart/form-data": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            },
        },
        responses={200: UploadSerializer, 202: UploadSerializer},
    )
    def post(self, request: Request) -> Response:
        query = UploadQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        name, content = _file(request)
        upload = upload_create(
            user=self.reader,
            file_name=query.validated_data.get("name", name),
            content=content,
            as_of=query.validated_data.get("as_of"),
            address=client_address(request),
        )
        address = reverse("api:diagnose-answer", kwargs={"upload_id": upload.pk})
        status = 200 if upload.state == UploadState.DONE else 202
        return Response(UploadSerializer(upload).data, status=status, headers={"Location": address})


class DiagnoseAnswer(PrivateView):
    """The answer to an upload, for the person who handed it in and for admins."""

    token_scope: ClassVar[TokenScope | None] = TokenScope.DIAGNOSE

    @extend_schema(operation_id="diagnose_get", responses=UploadSerializer)
    def get(self, request: Request, upload_id: str) -> Response:
        return Response(UploadSerializer(upload_get(user=self.reader, upload_id=upload_id)).data)


def _file(request: Request) -> tuple[str, bytes]:
    """Return name and content of the one file in the request."""
    found = request.FILES.get("file")
    if not isinstance(found, UploadedFile):
        raise ValidationError({"file": ["Send the snapshot as the field named file, or as the body itself."]})
    return found.name or "snapshot", b"".join(_limited(found.chunks(CHUNK)))


def _limited(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Pass chunks on until they are more than an upload may be."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > settings.GANGDASH_UPLOAD_MAX_BYTES:
            most = settings.GANGDASH_UPLOAD_MAX_BYTES // 1024**2
            raise ApplicationError("upload_too_large", f"A snapshot file may have {most} MiB here")
        yield chunk
