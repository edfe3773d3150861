# A content is kept once, however often a cluster comes back to it.

import django.db.models.deletion
from django.db import migrations, models


def share(apps, schema_editor):
    """Move each packed body to its content; of bodies with the same content one is left."""
    content, body = apps.get_model("collector", "ReadingContent"), apps.get_model("collector", "ReadingBody")
    for row in body.objects.select_related("reading").iterator(chunk_size=10):
        reading = row.reading
        content.objects.get_or_create(
            cluster_id=reading.cluster_id, key=reading.content_key, defaults={"packed": row.packed}
        )


def part(apps, schema_editor):
    """Give each reading its own body again."""
    content, body = apps.get_model("collector", "ReadingContent"), apps.get_model("collector", "ReadingBody")
    reading = apps.get_model("collector", "Reading")
    for row in content.objects.iterator(chunk_size=10):
        for found in reading.objects.filter(cluster_id=row.cluster_id, content_key=row.key):
            body.objects.create(reading=found, packed=row.packed)


class Migration(migrations.Migration):

    dependencies = [
        ("clusters", "0002_clock_skew"),
        ("collector", "0002_claims_and_analysis_lock"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReadingContent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("packed", models.BinaryField()),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="reading_contents", to="clusters.cluster")),
            ],
        ),
        migrations.AddConstraint(
            model_name="readingcontent",
            constraint=models.UniqueConstraint(fields=("cluster", "key"), name="reading_content_once"),
        ),
        migrations.RunPython(share, part),
        migrations.DeleteModel(name="ReadingBody"),
    ]
