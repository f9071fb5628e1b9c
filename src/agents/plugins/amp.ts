// @i-know-the-amp-plugin-api-is-wip-and-very-experimental-right-now
// Tells 'oxundo hook amp' where each prompt's turn begins and ends.
// Made by 'oxundo init amp'; 'oxundo uninstall amp' takes it away.
import { spawnSync } from "node:child_process"

const call = (event: string, e: any) => {
  try {
    const payload = {
      session_id: e?.thread?.id,
      turn_id: e?.id,
      prompt: typeof e?.message === "string" ? e.message : undefined,
      status: e?.status,
    }
    spawnSync("oxundo", ["hook", "amp", event], {
      input: JSON.stringify(payload),
      stdio: ["pipe", "ignore", "ignore"],
      timeout: 30000,
    })
  } catch {}
}

export default function (amp: any) {
  amp.on("agent.start", async (e: any) => {
    call("begin", e)
    return {}
  })
  amp.on("agent.end", async (e: any) => {
    call("end", e)
  })
}
