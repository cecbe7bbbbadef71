"use strict";
// ---- charts: drawn one after the other once the player is there

async function drawCharts() {
  for (const [id, chart] of Object.entries(page.charts)) {
    await new Promise(requestAnimationFrame);  // the player answers in between
    const place = document.getElementById(id);
    if (!place) continue;
    const ink = shade("--ink"), line = shade("--line");
    const layout = structuredClone(chart.layout);
    Object.assign(layout, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { ...layout.font, color: ink },
    });
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis/.test(key)) Object.assign(layout[key], { gridcolor: line, zerolinecolor: line, linecolor: line });
    }
    Plotly.react(place, chart.data, layout, { responsive: true, displaylogo: false });
  }
}

dark.addEventListener("change", drawCharts);
drawCharts().then(() => { document.documentElement.dataset.charts = "true"; });
