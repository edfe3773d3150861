/* Draws the figures that a page carries as JSON, in the colours that the stylesheet has at that moment. */
"use strict";

(() => {
  const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, scrollZoom: false, locale: "en" };
  const FILL_OPACITY = 0.4;

  function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function faded(colour) {
    const hex = colour.slice(1).replace(/^(.)(.)(.)$/, "$1$1$2$2$3$3");
    const [red, green, blue] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${red},${green},${blue},${FILL_OPACITY})`;
  }

  const fixed = {
    total: () => {},
    capacity: (trace) => { trace.marker.color = token("cap-np"); },
    barred: (trace) => { trace.marker.pattern.fgcolor = token("cap-pre"); },
    outline: (trace) => { trace.marker.line.color = token("line-3"); },
    short: (trace) => { trace.marker.pattern.fgcolor = token("nofit-f"); },
  };

  function colourTrace(trace) {
    const name = trace.meta?.token;
    if (!name) return;
    if (fixed[name]) return void fixed[name](trace);
    const colour = token(`${name}-f`);
    if (trace.type === "bar") {
      Object.assign(trace.marker, { color: faded(colour) });
      trace.marker.line.color = colour;
      if (trace.marker.pattern?.shape) trace.marker.pattern.fgcolor = colour;
    } else if (trace.meta.edge) {
      trace.line.color = colour;
    } else {
      trace.line.color = colour;
      trace.fillcolor = faded(colour);
      if (trace.fillpattern?.shape) trace.fillpattern.fgcolor = colour;
    }
  }

  function colourMarks(layout) {
    for (const shape of layout.shapes || []) {
      if (shape.name === "gap") shape.fillcolor = token("sunken");
      else shape.line.color = token(shape.name === "need" ? "nofit-f" : "ink-3");
    }
    for (const note of layout.annotations || []) {
      if (note.name === "mark") note.bgcolor = token("surface");
      note.font = { ...note.font, color: token({ need: "nofit-i", value: "ink" }[note.name] || "ink-3") };
    }
  }

  function colourLayout(layout) {
    const base = layout.template.layout;
    base.font.color = token("ink-3");
    base.xaxis.linecolor = token("line-2");
    base.yaxis.gridcolor = token("line");
    Object.assign(base.hoverlabel, { bgcolor: token("raised"), bordercolor: token("line-2") });
    base.hoverlabel.font.color = token("ink");
    colourMarks(layout);
  }

  function draw(place) {
    const source = document.getElementById(place.dataset.figure);
    if (!source || !window.Plotly) return;
    const figure = JSON.parse(source.textContent);
    figure.data.forEach(colourTrace);
    colourLayout(figure.layout);
    window.Plotly.react(place, figure.data, figure.layout, CONFIG);
    if (place.dataset.pin && !place.dataset.drawn) place.on("plotly_click", (event) => pin(place, event.points[0]));
    place.dataset.drawn = "true";
  }

  /* Leads to the page as of the moment that was clicked; the table or list below a chart has the same as links. */
  function pin(place, point) {
    /* The axis has times of UTC, with or without saying so, as finely as it needs. */
    const moment = point?.customdata?.[3] || `${String(point?.x).slice(0, 19).replace(" ", "T")}Z`;
    if (!Number.isNaN(Date.parse(moment))) location.assign(place.dataset.pin + encodeURIComponent(moment));
  }

  function drawAll(from = document) {
    for (const place of from.querySelectorAll("[data-figure]")) draw(place);
  }

  document.addEventListener("gangdash:theme", () => drawAll());
  document.addEventListener("gangdash:part", (event) => drawAll(event.target));
  for (const media of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(media).addEventListener("change", () => drawAll());
  }
  drawAll();
})();
