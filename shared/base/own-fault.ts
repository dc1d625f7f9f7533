/** What a process has no more of, in Node's names: descriptors, its own or the machine's, buffers, memory, threads. */
const codes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"]);

/** What was to be asked was never asked, for want of something in this process: nothing of it says anything of them. */
export function isOwnFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && codes.has(String(error.code))) || isOwnFault(error.cause);
}
