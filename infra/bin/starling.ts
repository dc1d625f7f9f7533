import { starlingApp } from "#infra/starling-app.ts";

starlingApp().app.synth();
