import { printSettingErrors } from "#infra/print-setting-errors.ts";
import { starlingApp } from "#infra/starling-app.ts";

printSettingErrors(() => starlingApp().app.synth());
