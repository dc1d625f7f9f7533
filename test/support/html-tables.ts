/** Reads text from HTML pages as people see it, without a browser and without the code that made the pages. */

/** The cell texts of the table with this caption, by row. */
export function tableIn(html: string, caption: string): readonly (readonly string[])[] {
  const [table] = html
    .split('<table role="table">')
    .slice(1)
    .map((rest) => rest.split("</table>")[0] ?? "")
    .filter((text) => text.includes(`<caption>${caption}</caption>`));
  if (table === undefined) return [];
  const body = table.split('<tbody role="rowgroup">')[1] ?? "";
  return body
    .split('<tr role="row">')
    .slice(1)
    .map((row) => [...row.matchAll(/<td [^>]*>(.*?)<\/td>/gs)].map(([, cell = ""]) => textOf(cell)));
}

/** The text inside elements. An element that describes a click has none. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<cwdb-action .*?<\/cwdb-action>/gs, "")
    .replaceAll(/<title>.*?<\/title>/gs, "")
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .trim();
}
