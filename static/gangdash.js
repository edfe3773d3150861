/* What pages do beyond links and forms: light or dark, copy, times that count on, folding, shortcuts, the palette,
   and refreshed parts that never move a row under the reader. Without this file every page still reads and links. */
"use strict";

(() => {
  const root = document.documentElement;
  const body = document.body;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const skew = Date.parse(body.dataset.now || "") - Date.now() || 0;

  /* ------------------------------------------------------------------------------------------- light or dark */
  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function switchTheme() {
    const theme = isDark() ? "light" : "dark";
    root.dataset.theme = theme;
    document.cookie = `gangdash_theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    document.dispatchEvent(new CustomEvent("gangdash:theme"));
  }

  /* ---------------------------------------------------------------------------------------------------- copy */
  let toastTimer = 0;

  function say(words) {
    let toast = byId("toast");
    if (!toast) {
      toast = Object.assign(document.createElement("div"), { id: "toast", className: "toast" });
      toast.setAttribute("role", "status");
      body.append(toast);
    }
    toast.textContent = words;
    toast.hidden = false;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { toast.hidden = true; }, 2500);
  }

  /* The clipboard API needs a secure context; plain HTTP inside a company network has none. */
  function copyByHand(text) {
    const field = Object.assign(document.createElement("textarea"), { value: text, className: "vh" });
    body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }

  async function copy(text) {
    if (navigator.clipboard) {
      try {
        await navigator.clipboard.writeText(text);
        return say("Copied");
      } catch (error) {
        if (!(error instanceof DOMException)) throw error;
      }
    }
    return say(copyByHand(text) ? "Copied" : "The browser does not allow copying here");
  }

  /* ----------------------------------------------------------------------------------- times that count on */
  const NB = "\u00a0";

  function span(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    const minutes = Math.floor(whole / 60);
    const hours = Math.floor(minutes / 60);
    if (whole < 60) return `${whole}${NB}s`;
    if (minutes < 10 && whole % 60) return `${minutes}${NB}min${NB}${whole % 60}${NB}s`;
    if (minutes < 60) return `${minutes}${NB}min`;
    if (hours < 24) return minutes % 60 ? `${hours}${NB}h${NB}${minutes % 60}${NB}min` : `${hours}${NB}h`;
    return hours % 24 ? `${Math.floor(hours / 24)}${NB}d${NB}${hours % 24}${NB}h` : `${Math.floor(hours / 24)}${NB}d`;
  }

  function tick() {
    if (document.hidden) return;
    for (const time of all("time[data-since]")) {
      const text = span((Date.now() + skew - Date.parse(time.dateTime)) / 1000);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  /* ------------------------------------------------------------------------------------- parts that refresh */
  const served = new Map();
  const etags = new WeakMap();
  const pausedUntil = new WeakMap();
  const failures = new WeakMap();
  let pendingList = null;

  /* Markup as served, without the texts that count on: only a real change replaces a part. */
  function plain(element) {
    const clone = element.cloneNode(true);
    for (const time of all("time[data-since]", clone)) time.textContent = "";
    return clone.outerHTML;
  }

  function remember(from) {
    for (const part of all("[data-part][id]", from)) served.set(part.id, plain(part));
  }

  function openFolds(part) {
    return all("details[id][open]", part).map((details) => details.id);
  }

  function replacePart(part, fresh) {
    const open = openFolds(part);
    const focus = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.replaceWith(fresh);
    for (const id of open) byId(id)?.setAttribute("open", "");
    if (focus) byId(focus)?.focus({ preventScroll: true });
    window.htmx?.process(fresh);
    fresh.dispatchEvent(new CustomEvent("gangdash:part", { bubbles: true }));
  }

  function refreshParts(page) {
    for (const fresh of all("[data-part][id]", page)) {
      const part = byId(fresh.id);
      const markup = plain(fresh);
      if (!part || served.get(fresh.id) === markup) continue;
      served.set(fresh.id, markup);
      replacePart(part, document.importNode(fresh, true));
    }
  }

  const rowsOf = (list) => all("tr.gr[id]", list);
  const placeOf = (row) => `${row.closest("tbody").dataset.key} ${row.id}`;

  /* Rows that are new, gone, in another group, or in another order than before. */
  function movedRows(list, fresh) {
    const before = rowsOf(list).map(placeOf);
    const after = rowsOf(fresh).map(placeOf);
    const stays = new Set(before.filter((place) => after.includes(place)));
    const touched = new Set([...before, ...after].filter((place) => !stays.has(place)).map((p) => p.split(" ").pop()));
    const orderBefore = before.filter((place) => stays.has(place));
    const orderAfter = after.filter((place) => stays.has(place));
    return touched.size + orderBefore.filter((place, at) => place !== orderAfter[at]).length;
  }

  function refreshCells(list, fresh) {
    for (const row of rowsOf(fresh)) {
      const old = byId(row.id);
      if (!old || old.contains(document.activeElement)) continue;
      [...row.cells].forEach((cell, at) => {
        if (plain(old.cells[at]) !== plain(cell)) old.cells[at].innerHTML = cell.innerHTML;
      });
    }
  }

  function refreshHeaders(list, fresh) {
    const groups = new Map(all("tbody.grp", list).map((group) => [group.dataset.key, group]));
    for (const group of all("tbody.grp", fresh)) {
      const old = groups.get(group.dataset.key);
      for (const part of [".gs", ".gm"]) {
        const [here, there] = [old?.querySelector(part), group.querySelector(part)];
        if (here && there && here.innerHTML !== there.innerHTML) here.innerHTML = there.innerHTML;
      }
    }
  }

  function refreshList(list, fresh) {
    if (!rowsOf(list).length) return showList(list, fresh);
    const moved = movedRows(list, fresh);
    refreshCells(list, fresh);
    refreshHeaders(list, fresh);
    pendingList = moved ? fresh : null;
    const notice = byId("list-pending");
    notice.replaceChildren();
    if (!moved) return undefined;
    const words = document.createElement("span");
    words.textContent = `${moved} ${moved === 1 ? "row" : "rows"} changed since you opened this list.`;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn quiet" });
    button.textContent = "Show them";
    button.dataset.do = "show-pending";
    notice.append(words, button);
    return undefined;
  }

  function showList(list, fresh) {
    pendingList = null;
    const copyOfFresh = document.importNode(fresh, true);
    list.replaceWith(copyOfFresh);
    restoreFolds();
    window.htmx?.process(copyOfFresh);
  }

  function parse(text) {
    return new DOMParser().parseFromString(text, "text/html");
  }

  document.addEventListener("htmx:configRequest", (event) => {
    const element = event.detail.elt;
    const tag = etags.get(element) || element.dataset.etag;
    if (tag) event.detail.headers["If-None-Match"] = tag;
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    const element = event.detail.elt;
    if (document.hidden || Date.now() < (pausedUntil.get(element) || 0)) return event.preventDefault();
    return element.setAttribute("aria-busy", "true");
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt: element, xhr } = event.detail;
    element.removeAttribute("aria-busy");
    if (xhr.status >= 200 && xhr.status < 400) {
      failures.delete(element);
      const tag = xhr.getResponseHeader("ETag");
      if (tag) etags.set(element, tag);
      return;
    }
    /* Ask less often while the server does not answer, and not all pages in step. */
    const count = (failures.get(element) || 0) + 1;
    failures.set(element, count);
    pausedUntil.set(element, Date.now() + Math.min(2 ** count * 5000, 300000) * (0.75 + Math.random() / 2));
    if (xhr.status === 401 || xhr.status === 403) location.reload();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt: element, xhr } = event.detail;
    if (xhr.status !== 200 || !element.hasAttribute("data-refresh")) return;
    event.detail.shouldSwap = false;
    /* A login page in place of a fragment: the session has ended. */
    if (!xhr.getResponseHeader("ETag")) return location.reload();
    const page = parse(xhr.responseText);
    const list = page.querySelector("#list");
    if (list && element.id === "list") refreshList(element, list);
    else refreshParts(page);
  });

  /* -------------------------------------------------------------------------------------------------- folding */
  const foldKey = `folds ${location.pathname}`;

  function foldedKeys() {
    return new Set(JSON.parse(sessionStorage.getItem(foldKey) || "[]"));
  }

  function setFolded(group, isFolded) {
    group.classList.toggle("folded", isFolded);
    group.querySelector(".tw")?.setAttribute("aria-expanded", String(!isFolded));
  }

  function toggleFold(group) {
    const keys = foldedKeys();
    const isFolded = !group.classList.contains("folded");
    setFolded(group, isFolded);
    if (isFolded) keys.add(group.dataset.key);
    else keys.delete(group.dataset.key);
    sessionStorage.setItem(foldKey, JSON.stringify([...keys]));
  }

  function restoreFolds() {
    const keys = foldedKeys();
    for (const group of all("tbody.grp")) setFolded(group, keys.has(group.dataset.key));
  }

  /* ------------------------------------------------------------------------------------------------ palette */
  const palette = byId("palette");
  let paletteItems = [];
  let picked = 0;
  let asked = 0;

  function drawPalette() {
    const list = byId("palette-list");
    list.replaceChildren(...paletteItems.map((item, at) => paletteRow(item, at)));
    palette.querySelector(".none").hidden = paletteItems.length > 0;
    const input = palette.querySelector("input");
    input.setAttribute("aria-activedescendant", paletteItems.length ? `palette-${picked}` : "");
    byId(`palette-${picked}`)?.scrollIntoView({ block: "nearest" });
  }

  function paletteRow(item, at) {
    const row = Object.assign(document.createElement("li"), { id: `palette-${at}` });
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", String(at === picked));
    row.dataset.at = at;
    const words = Object.assign(document.createElement("span"), { className: "trunc", textContent: `${item.title} ` });
    words.append(Object.assign(document.createElement("span"), { className: "dim", textContent: item.detail }));
    const key = document.createElement(at === picked ? "kbd" : "span");
    key.textContent = at === picked ? "Enter" : "";
    row.append(drawIcon(item.icon), words, key);
    return row;
  }

  function drawIcon(name) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const use = document.createElementNS(space, "use");
    svg.setAttribute("class", "i");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    use.setAttribute("href", `${body.dataset.icons}#i-${name}`);
    svg.append(use);
    return svg;
  }

  async function askPalette(text) {
    asked += 1;
    const mine = asked;
    const address = `${palette.dataset.source}&q=${encodeURIComponent(text)}`;
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok || mine !== asked) return;
    paletteItems = (await answer.json()).items;
    picked = 0;
    drawPalette();
  }

  function openPalette() {
    if (!palette || palette.open) return;
    palette.showModal();
    const input = palette.querySelector("input");
    input.value = "";
    input.focus();
    askPalette("");
  }

  function onPaletteKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && paletteItems.length) {
      event.preventDefault();
      picked = (picked + step + paletteItems.length) % paletteItems.length;
      drawPalette();
    } else if (event.key === "Enter" && paletteItems[picked]) {
      event.preventDefault();
      location.assign(paletteItems[picked].url);
    }
  }

  let paletteTimer = 0;
  palette?.addEventListener("input", (event) => {
    clearTimeout(paletteTimer);
    paletteTimer = setTimeout(() => askPalette(event.target.value), 120);
  });
  palette?.addEventListener("keydown", onPaletteKey);
  palette?.addEventListener("click", (event) => {
    const row = event.target.closest("li[data-at]");
    if (row) location.assign(paletteItems[Number(row.dataset.at)].url);
    else if (event.target === palette) palette.close();
  });

  /* ---------------------------------------------------------------------------------------------- shortcuts */
  let goUntil = 0;

  function moveRow(step) {
    const links = all("tr.gr a.gang").filter((link) => link.offsetParent);
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1);
    links[next].focus();
  }

  function foldHere() {
    const group = document.activeElement.closest?.("tbody.grp") || document.querySelector("tbody.grp");
    if (group) toggleFold(group);
  }

  /* The reasons of a gang, newest first: one step into the past or back, from the newest one back to now. */
  function stepReason(step) {
    const links = all(".reasons a[href]");
    const next = links[links.findIndex((link) => link.href === location.href) + step];
    if (next) location.assign(next.href);
    else if (step < 0) document.querySelector("#strip a.primary")?.click();
  }

  function searchHere() {
    const field = document.querySelector("[data-list-search]");
    if (field) field.focus();
    else openPalette();
  }

  const keys = {
    "/": searchHere,
    "?": () => byId("shortcuts")?.showModal(),
    D: switchTheme,
    j: () => moveRow(1),
    k: () => moveRow(-1),
    o: foldHere,
    "[": () => stepReason(1),
    "]": () => stepReason(-1),
    y: () => copy(location.href),
    g: () => { goUntil = Date.now() + 1500; },
  };

  function onKey(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    const inField = event.target.closest?.("input, textarea, select, dialog, [contenteditable]");
    if (inField || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (Date.now() < goUntil) {
      goUntil = 0;
      const place = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (place) return location.assign(place.dataset.url);
    }
    if (!keys[event.key]) return undefined;
    event.preventDefault();
    return keys[event.key]();
  }

  /* ------------------------------------------------------------------------------------------------- actions */
  const actions = {
    theme: switchTheme,
    palette: openPalette,
    close: (button) => button.closest("dialog").close(),
    fold: (button) => toggleFold(button.closest("tbody")),
    "show-pending": () => {
      if (pendingList) showList(byId("list"), pendingList);
      byId("h-list")?.scrollIntoView({ block: "nearest" });
    },
    "copy-link": () => copy(location.href),
  };

  document.addEventListener("click", (event) => {
    const copied = event.target.closest("[data-copy]");
    if (copied) return copy(copied.dataset.copy);
    const button = event.target.closest("[data-do]");
    if (button) return actions[button.dataset.do]?.(button);
    for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    return undefined;
  });

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" ? document.querySelector("details.menu[open]") : null;
    if (!menu) return onKey(event);
    menu.open = false;
    return menu.querySelector("summary").focus();
  });

  /* --------------------------------------------------------------------------------------------- drop a file */
  for (const zone of all("[data-drop]")) {
    const input = zone.querySelector("input[type=file]");
    const mark = (isOver) => zone.classList.toggle("over", isOver);
    const name = () => { zone.querySelector("[data-file-name]").textContent = input.files[0]?.name || ""; };
    input.addEventListener("change", name);
    zone.addEventListener("dragover", (event) => { event.preventDefault(); mark(true); });
    zone.addEventListener("dragleave", () => mark(false));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      mark(false);
      input.files = event.dataTransfer.files;
      name();
    });
  }

  remember(document);
  restoreFolds();
  setInterval(tick, 1000);
})();
