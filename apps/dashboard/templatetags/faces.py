"""Marks, amounts and moments inside templates. Everything that comes from a cluster is escaped here, once."""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.dashboard import marks, names, numbers
from apps.diagnosis.models import ReasonTimeline
from apps.inventory.choices import NodeState
from apps.workloads.models import Gang
from apps.workloads.veil import Veil

register = template.Library()

register.filter("num", numbers.number)
register.filter("amount", numbers.amount)
register.filter("iso", numbers.iso)
register.filter("full_clock", numbers.full_clock)
register.filter("parsed", numbers.parse_time)
register.filter("short_name", names.short_name)
register.filter("level_word", names.level_word)
register.filter("listed", names.listed)


@register.filter
def counted(value: float, nouns: str) -> str:
    """Write a number with its noun: ``{{ n|counted:"gang" }}`` or ``"entry,entries"``."""
    singular, _, plural = nouns.partition(",")
    return numbers.counted(value, singular, plural)


@register.filter
def counted_list(values: Sized, nouns: str) -> str:
    return counted(len(values), nouns)


@register.filter
def certainty_means(certainty: str) -> str:
    return marks.certainty_means(certainty)


@register.filter
def unit_word(unit: str) -> str:
    return numbers.UNIT_WORDS.get(unit, unit)


@register.simple_tag
def known(value: float | None, nouns: str = "") -> SafeString:
    """Write an amount that may not have been readable: a number, with its noun where named, or the amber eye."""
    if value is None:
        return format_html('<span class="nr">{} not read</span>', icon("eye"))
    return format_html("{}", counted(value, nouns) if nouns else numbers.number(value))


@register.filter
def word(text: str) -> str:
    """Write an identifier as words: ``not_ready`` as ``not ready``."""
    return text.replace("_", " ")


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Draw one symbol; it is decoration, so a word stands beside it."""
    return format_html(
        '<svg class="i{}" viewBox="0 0 16 16" aria-hidden="true"><use href="{}#i-{}"></use></svg>',
        f" {extra}" if extra else "",
        static("icons.svg"),
        name,
    )


@register.simple_tag
def verdict(value: str, size: str = "") -> SafeString:
    """Draw a verdict badge: icon and word, always both."""
    mark = marks.verdict_mark(value)
    classes = f"v v-{mark.family}{' big' if size else ''}"
    return format_html('<span class="{}">{}{}</span>', classes, icon(mark.icon), mark.word)


@register.simple_tag
def family(value: str) -> str:
    """Return the class that gives an element the verdict's colours."""
    return f"k-{marks.verdict_mark(value).family}"


@register.simple_tag
def verdict_icon(value: str) -> SafeString:
    return icon(marks.verdict_mark(value).icon)


@register.filter
def verdict_word(value: str) -> str:
    return marks.verdict_mark(value).word


@register.simple_tag
def said(item: Gang | ReasonTimeline, veil: Veil) -> str:
    """Write what was said of a gang, without the names that this reader may not know."""
    gang = item if isinstance(item, Gang) else item.gang
    return veil.text(item.sentence, cluster=gang.cluster.name)


@register.simple_tag
def veiled(text: str, veil: Veil, cluster: str) -> str:
    """Write a text of the cluster without the names that this reader may not know."""
    return veil.text(text, cluster=cluster)


@register.simple_tag
def who(value: str) -> SafeString:
    mark = marks.who_mark(value)
    return format_html('<span class="who">{}{}</span>', icon(mark.icon), mark.word)


@register.filter
def who_word(value: str) -> str:
    return marks.who_mark(value).word


@register.simple_tag
def proof(certainty: str) -> SafeString:
    """Draw how sure a verdict is; green only where it is proved."""
    mark = marks.CERTAINTY[certainty or "no_verdict"]
    means = marks.certainty_means(certainty or "no_verdict")
    return format_html(
        '<span class="proof {}">{}{}<span class="vh">: {}</span></span>', mark.family, icon(mark.icon), mark.word, means
    )


@register.simple_tag
def moment(value: datetime | None, now: datetime) -> SafeString:
    """Write a point in time; the full one is in the title, the machine's in the attribute."""
    if value is None:
        return format_html('<span class="absent">{}</span>', "—")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        numbers.iso(value),
        numbers.full_clock(value),
        numbers.clock(value, now),
    )


@register.simple_tag
def waited(value: datetime | None, now: datetime) -> SafeString:
    """Write how long something lasts since then; the script counts it on while the page is open."""
    if value is None:
        return format_html('<span class="absent">{}</span>', "—")
    return format_html(
        '<time datetime="{}" title="since {}" data-since>{}</time>',
        numbers.iso(value),
        numbers.full_clock(value),
        numbers.between(value, now),
    )


@register.simple_tag
def lasted(start: datetime, end: datetime) -> str:
    return numbers.lasted(start, end)


@register.simple_tag
def bound(value: float | None) -> SafeString:
    """Write a quota or limit: a number, none for unlimited, a dash for not set."""
    if value is None:
        return format_html('<span class="absent" title="not set">{}</span>', "—")
    if value == numbers.UNLIMITED:
        return format_html('<span class="dim">{}</span>', "none")
    return format_html("{}", numbers.number(value))


@register.filter
def state_word(state: str) -> str:
    """Write the state of a node or of a part of the platform."""
    return str(NodeState(state).label).lower() if state in NodeState.values else state
