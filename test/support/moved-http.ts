import type { HttpRemote } from "#shared/ports.ts";

/** Asks servers on this machine in the place of hosts that a test cannot have. @param hosts - origins by origin. */
export function movedHttp(http: HttpRemote, hosts: Readonly<Record<string, string>>): HttpRemote {
  return {
    ask(question) {
      const { origin } = new URL(question.url);
      const moved = hosts[origin] ?? origin;
      return http.ask({ ...question, url: `${moved}${question.url.slice(origin.length)}` });
    },
  };
}
