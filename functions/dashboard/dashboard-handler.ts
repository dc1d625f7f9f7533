import type { ReadPorts } from "#functions/api/http/read-routes.ts";
import { readWith } from "#functions/api/http/read-with.ts";
import { readWidgetEvent } from "#functions/dashboard/widget-event.ts";
import { widgetHost, widgetOf } from "#functions/dashboard/widget-host.ts";
import { answerPage } from "#shared/pages/answer-page.ts";
import type { Log } from "#shared/ports.ts";

export interface DashboardPorts extends ReadPorts {
  readonly log: Log;
}

/** The part of Lambda's context that the dashboard reads. */
export interface WidgetInvocation {
  /** ARN that the console calls again. */
  readonly invokedFunctionArn: string;
  readonly awsRequestId: string;
}

/** Answers with HTML, or with Markdown when the console asks for the widget's description. Never throws. */
export type WidgetHandler = (event: unknown, context: WidgetInvocation) => Promise<string>;

const about = `## Starling
The fleet, read from its rows, with the views of \`starling ui\`. It only reads.

Param | Description
---|---
**path** | Where to begin: \`/\`, \`/versions\`, \`/clusters\`, \`/sources\`, \`/receivers\`, \`/timeline\`, \`/events\`, \`/syncgroups/NAMESPACE/NAME\`
**query** | What that view takes: \`{"group": "NAMESPACE/NAME"}\` for \`/timeline\`

### Example parameters
\`\`\` yaml
path: /syncgroups/shop/web
\`\`\`
`;

export function dashboardHandler(ports: DashboardPorts): WidgetHandler {
  const ask = readWith(ports);
  return async (event, { invokedFunctionArn, awsRequestId }) => {
    const { describe, place, theme } = readWidgetEvent(event);
    if (describe) return about;
    const host = widgetHost(ports.clock.now(), invokedFunctionArn);
    const { path, query } = place ?? { path: "/none", query: {} };
    const answer = await answerPage(ask, { path, query }, host);
    if (answer.fault !== undefined) ports.log.error("a view could not be made", { fault: answer.fault, awsRequestId });
    return widgetOf(answer, { path, theme, host });
  };
}
