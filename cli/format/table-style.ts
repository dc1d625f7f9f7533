import { paintState } from "#cli/format/paint-state.ts";
import type { TableStyle } from "#cli/format/table.ts";
import type { Session } from "#cli/session/session.ts";

/** A terminal gets colours and lines that fit; a file, a pipe and `-o wide` get everything. */
export function tableStyle({ io, options }: Pick<Session, "io" | "options">): TableStyle {
  const coloured = io.outIsTerminal && options.color !== false && io.env.NO_COLOR === undefined;
  return {
    headers: options.headers === false ? "hide" : "show",
    ...(coloured ? { paint: paintState } : {}),
    ...(io.outIsTerminal && options.output !== "wide" ? { columns: io.columns } : {}),
  };
}
