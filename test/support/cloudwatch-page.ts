/**
 * A page that treats a custom widget like the console of CloudWatch (User Guide, "Custom widgets": interactivity,
 * security). It removes scripts, frames and `use` from the function's answer. A click on an element before a
 * `cwdb-action` calls the function again, with the action's JSON, the widget's settings and the fields of its forms.
 */
import { createServer } from "node:http";
import type { WidgetHandler } from "#functions/dashboard/dashboard-handler.ts";

const page = (theme: string) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>CloudWatch</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>body{margin:0;font-family:sans-serif;background:${theme === "dark" ? "#0f1b2a" : "#fff"}}</style></head>
<body><main><h1 style="position:absolute;clip-path:inset(50%)">Fleet</h1><div id="widget"></div></main><script>
const widget = document.getElementById("widget");
const see = async (given) => {
  const all = Object.fromEntries([...widget.querySelectorAll("input[name]")].map((field) => [field.name, field.value]));
  const timeRange = { mode: "relative", start: Date.now() - 48 * 3600000, end: Date.now() };
  const widgetContext = { theme: "${theme}", timeRange, forms: { all }, params: { path: "/" }, width: innerWidth, height: innerHeight };
  const answer = await fetch("/invoke", { method: "POST", body: JSON.stringify({ ...given, widgetContext }) });
  const parsed = new DOMParser().parseFromString(await answer.json(), "text/html");
  for (const node of parsed.querySelectorAll("script,iframe,use,object,embed,link,meta,form")) node.remove();
  for (const node of parsed.querySelectorAll("*"))
    for (const { name } of [...node.attributes]) if (name.startsWith("on")) node.removeAttribute(name);
  widget.replaceChildren(...parsed.head.childNodes, ...parsed.body.childNodes);
  for (const action of widget.querySelectorAll("cwdb-action[action=call]")) {
    const params = JSON.parse(action.textContent);
    action.previousElementSibling.addEventListener("click", () => see(params));
    action.remove();
  }
  widget.dataset.seen = JSON.stringify(given);
};
see({ path: "/" });
</script></body></html>`;

export interface CloudWatchPage {
  readonly url: (theme: "light" | "dark") => string;
  close(): Promise<void>;
}

export async function serveCloudWatch(widget: WidgetHandler): Promise<CloudWatchPage> {
  const server = createServer(async (request, response) => {
    if (request.method === "POST") {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const context = { invokedFunctionArn: "arn:aws:lambda:eu-west-1:1:function:d", awsRequestId: "1" };
      const html = await widget(JSON.parse(Buffer.concat(parts).toString()), context);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(html));
      return;
    }
    const theme = request.url === "/dark" ? "dark" : "light";
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page(theme));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the page has no port");
  return {
    url: (theme) => `http://127.0.0.1:${address.port}/${theme}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
