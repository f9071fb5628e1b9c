// Tells 'oxundo hook opencode' where each prompt's turn begins and ends.
// Made by 'oxundo init opencode'; 'oxundo uninstall opencode' takes it away.
import { spawnSync } from "node:child_process"

const call = (event, payload) => {
  try {
    // At a turn's end opencode may exit at once: this must be done before.
    spawnSync("oxundo", ["hook", "opencode", event], {
      input: JSON.stringify(payload),
      stdio: ["pipe", "ignore", "ignore"],
      timeout: 30000,
    })
  } catch {}
}

export const Oxundo = async ({ directory }) => {
  // The session for which another one is at work, as its sub-agent.
  const parents = new Map()
  const top = (id) => (parents.has(id) ? top(parents.get(id)) : id)
  // Sessions at work: that one is idle is told twice, and the second time you may be at work already.
  const busy = new Set()
  // What ended a session's prompt before its time: "MessageAbortedError" after Escape.
  const errors = new Map()
  const sessions = new Set()
  return {
    "chat.message": async (input, output) => {
      if (parents.has(input.sessionID)) return
      errors.delete(input.sessionID)
      busy.add(input.sessionID)
      sessions.add(input.sessionID)
      const texts = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      call("begin", {
        session_id: input.sessionID,
        message_id: input.messageID ?? output?.message?.id,
        prompt: texts.map((part) => part.text).join("\n"),
        model: input.model?.modelID,
        cwd: directory,
      })
    },
    "tool.execute.before": async (input, output) => {
      call("call", {
        session_id: top(input.sessionID),
        tool: input.tool,
        call_id: input.callID,
        args: { path: output?.args?.filePath },
        cwd: directory,
      })
    },
    "tool.execute.after": async (input) => {
      call("called", { session_id: top(input.sessionID), tool: input.tool, call_id: input.callID, cwd: directory })
    },
    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created" && about.info?.parentID) parents.set(about.info.id, about.info.parentID)
      const idle = event.type === "session.idle" || (event.type === "session.status" && about.status?.type === "idle")
      if (event.type === "session.error") errors.set(about.sessionID, about.error?.name)
      if (event.type === "session.status" && about.status?.type === "busy") busy.add(about.sessionID)
      if (idle && busy.delete(about.sessionID) && !parents.has(about.sessionID)) {
        call("end", { session_id: about.sessionID, status: errors.get(about.sessionID), cwd: directory })
      }
      if (event.type === "session.deleted") call("gone", { session_id: about.info?.id, cwd: directory })
    },
    dispose: async () => sessions.forEach((id) => call("gone", { session_id: id, cwd: directory })),
  }
}
