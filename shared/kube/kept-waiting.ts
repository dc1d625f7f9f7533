/** The cluster did not answer within the worker's time. This says nothing about the requested object. */
export class KeptWaiting extends Error {
  constructor(cause: unknown) {
    super("the cluster takes long to answer; a worker with more time continues", { cause });
    this.name = "KeptWaiting";
  }
}
