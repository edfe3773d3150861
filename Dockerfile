# Production image: dependencies by hash, static files collected and compressed, one unprivileged user.
FROM python:3.11-slim AS build
WORKDIR /app
RUN python -m venv /venv
COPY requirements.lock .
RUN /venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock
COPY manage.py pyproject.toml ./
COPY gangdash gangdash
COPY apps apps
COPY templates templates
COPY static static
ENV GANGDASH_NO_BOOTSTRAP=1 DJANGO_SETTINGS_MODULE=gangdash.settings.production
# Collecting reads settings but uses none of these values; they exist in this step only.
RUN GANGDASH_SECRET_KEY=build GANGDASH_BASE_URL=http://build GANGDASH_BROKER_URL=redis://build \
    GANGDASH_DATABASE_URL=postgres://build:build@build/build \
    /venv/bin/python manage.py collectstatic --noinput --skip-checks

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gangdash
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    GANGDASH_NO_BOOTSTRAP=1 DJANGO_SETTINGS_MODULE=gangdash.settings.production REMAP_SIGTERM=SIGQUIT
USER 10001
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "gangdash.wsgi:application", "--bind", "0.0.0.0:8000", "--worker-class", "gthread", \
     "--workers", "2", "--threads", "4", "--worker-tmp-dir", "/dev/shm", "--no-control-socket"]
