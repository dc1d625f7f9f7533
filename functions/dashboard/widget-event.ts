import * as z from "zod";

const mostCharacters = 2000;
const text = z.string().max(mostCharacters);
const texts = z.record(text, text);
/** Milliseconds since 1970. */
const span = z.object({ start: z.number().int(), end: z.number().int() });

const place = z.object({ path: text.regex(/^\//), query: texts.default({}) });

/**
 * The event that CloudWatch passes to a custom widget: its parameters, or those of the clicked element, and the settings of
 * the dashboard. Every invoker of the function can write any event, so that nothing in it is trusted.
 * (CloudWatch User Guide, "Details about custom widgets".)
 */
const event = z.object({
  describe: z.boolean().default(false),
  path: z.string().optional(),
  query: z.unknown().optional(),
  widgetContext: z
    .object({
      theme: z.enum(["light", "dark"]).catch("light"),
      timeRange: span
        .extend({ zoom: span.optional().catch(undefined) })
        .optional()
        .catch(undefined),
      forms: z.object({ all: texts }).optional().catch(undefined),
    })
    .optional(),
});

export interface WidgetEvent {
  /** The console asks for the description of the widget, not for its content. */
  readonly describe: boolean;
  /** Path below the root of the pages; undefined when the event has none. */
  readonly place: { readonly path: string; readonly query: Readonly<Record<string, string>> } | undefined;
  readonly theme: "light" | "dark";
}

/** The fields of forms and the time range of the dashboard fill the parts of the query that links leave open. */
export function readWidgetEvent(given: unknown): WidgetEvent {
  const parsed = event.safeParse(given);
  if (!parsed.success) return { describe: false, place: undefined, theme: "light" };
  const { describe, path = "/", query = {}, widgetContext } = parsed.data;
  const asked = place.safeParse({ path, query });
  const theme = widgetContext?.theme ?? "light";
  if (!asked.success) return { describe, place: undefined, theme };
  const { timeRange, forms } = widgetContext ?? {};
  const time = timeRange?.zoom ?? timeRange;
  const range = time === undefined ? {} : { from: isoOf(time.start), to: isoOf(time.end) };
  return { describe, theme, place: { path: asked.data.path, query: { ...range, ...asked.data.query, ...forms?.all } } };
}

/** A time outside the calendar counts as absent. */
function isoOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
