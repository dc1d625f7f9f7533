/** The cluster kept its worker waiting for longer than that one has: nothing is said of what was asked. */
export class KeptWaiting extends Error {
  constructor(cause: unknown) {
    super("the cluster takes long to answer; a worker that has the time goes on", { cause });
    this.name = "KeptWaiting";
  }
}
