/** The Sources that a template names, and the paths that it uses of each. Pure. */
import type { SyncTemplate, TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";

type Naming = Pick<SyncTemplate, "source" | "render" | "overrides">;
type Taking = Naming & Pick<SyncTemplate, "path" | "components">;

/** Names of Sources of its namespace, each once: its own first, then those that only provide values files. */
export function templateSources(template: Naming): readonly string[] {
  const ways = [template, ...(template.overrides ?? [])] satisfies Pick<TemplateOverride, "render">[];
  return [...new Set([template.source, ...ways.flatMap(({ render }) => valueSources(render))])];
}

/** Names of the Sources besides the template's own that provide values files. */
export function valueSources(render: RenderOptions | undefined): readonly string[] {
  return (render?.helm?.valuesFrom ?? []).flatMap(({ source }) => source ?? []);
}

/** Folders and values files of one Source that a template uses on any cluster. */
export function pathsTaken(template: Taking, source: string): readonly string[] {
  const ways = [template, ...(template.overrides ?? [])] satisfies Pick<TemplateOverride, "render">[];
  const values = ways.flatMap(({ render }) => render?.helm?.valuesFrom ?? []);
  const files = values.filter((file) => (file.source ?? template.source) === source).map(({ path }) => path);
  if (source !== template.source) return files;
  return [
    ...ways.flatMap(({ path, components = [] }) => [...(path === undefined ? [] : [path]), ...components]),
    ...files,
  ];
}

/** A Source at one of its revisions. */
export interface SourcePin {
  readonly source: string;
  readonly revision: string;
}

/** The revisions at which templates stay, each once. */
export function templatePins(templates: readonly Pick<SyncTemplate, "source" | "revision">[]): readonly SourcePin[] {
  const pins = templates.flatMap(({ source, revision }) => (revision === undefined ? [] : [{ source, revision }]));
  return [...new Map(pins.map((pin) => [`${pin.source} ${pin.revision}`, pin])).values()];
}
