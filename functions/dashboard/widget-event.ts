import * as z from "zod";

const mostCharacters = 2000;
const text = z.string().max(mostCharacters);
const texts = z.record(text, text);
/** Milliseconds since 1970. */
const span = z.object({ start: z.number().int(), end: z.number().int() });

const place = z.object({ path: text.regex(/^\//), query: texts.default({}) });

/**
 * What CloudWatch gives a custom widget: its parameters, or those of what was clicked, and the dashboard's own settings. It
 * is whoever invokes the function that writes it, so that nothing of it is taken for more than a wish.
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
  /** The console asks for words about the widget, and not for the widget. */
  readonly describe: boolean;
  /** Below the root of the pages; undefined when it is none. */
  readonly place: { readonly path: string; readonly query: Readonly<Record<string, string>> } | undefined;
  readonly theme: "light" | "dark";
}

/** Fields of forms, and the dashboard's time, are parts of the query that links leave open. */
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

/** A moment that no calendar has is none. */
function isoOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
