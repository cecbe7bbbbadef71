"use strict";
// ---- charts: drawn one after the other once the player is there

// Named one by one: what plotly offers by itself would also send a chart to its servers.
const flat = [["zoom2d", "pan2d", "resetScale2d", "toImage"]];
const solid = [["orbitRotation", "pan3d", "resetCameraDefault3d", "toImage"]];

async function drawCharts() {
  for (const [id, chart] of Object.entries(page.charts)) {
    await new Promise(requestAnimationFrame);  // the player answers in between
    const place = document.getElementById(id);
    if (!place) continue;
    const ink = shade("--ink"), line = shade("--line");
    const tools = { color: shade("--quiet"), activecolor: ink };
    const layout = structuredClone(chart.layout);
    Object.assign(layout, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { ...layout.font, color: ink }, modebar: { ...layout.modebar, ...tools },
    });
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis/.test(key)) Object.assign(layout[key], { gridcolor: line, zerolinecolor: line, linecolor: line });
    }
    if (layout.height) place.style.height = `${layout.height}px`;  // kept when the page is resized
    const buttons = chart.data.some(trace => trace.type === "surface") ? solid : flat;
    Plotly.react(place, chart.data, layout,
      { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtons: buttons });
  }
}

dark.addEventListener("change", drawCharts);
drawCharts().then(() => { document.documentElement.dataset.charts = "true"; });
