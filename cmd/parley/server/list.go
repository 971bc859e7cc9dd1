package server

import "parley/channels/people"

// list makes the remaining parts, and returns all parts of the server in the order in which they are loaded.
func (s *Server) list(c Config) []part {
	r, g, chats, work := s.role, s.foundation, s.chats, s.agents
	answers := r.Works() && len(chats.chains.byAgent) > 0
	gates := newGateways(g, chats, work)
	ownData := newOwnData(g, chats.erasing, chats.liveChannels, people.PageLink{Owns: chats.owners.Includes, New: s.front.ownersLink}, s.front.recheck)
	ownData.join(gates, work)
	all := []part{
		{name: "home", is: s.home},
		{"costs", beside, r.Serves(), chats.costs},
		{name: "knowledge", is: work.knowledge},
		{name: "voices", is: work.voices},
		{name: "skills", is: work.skills},
		{"audit", upkeep, r.Serves() || r.Works(), chats.audit},
		{name: "sandbox", is: work.sandbox},
		{"MCP servers", background, r.Works(), mcpRunning{work.mcp, r}},
		{"nodes", background, r.Serves() || r.Works(), work.nodes},
		{"ssh targets", background, r.Serves() && r.Receives(), running(work.nodes.RunTargets)},
		{"MQTT broker", background, r.Serves() && r.Receives(), running(work.nodes.RunBroker)},
		{name: "guard", is: work.guard},
		{name: "endpoints", is: chats.liveChannels},
		{name: "inventory", is: newInventory(g, work.answerer.agents)},
		{name: "remembered", is: newRemembered(g, chats.erasing, s.front.hidden)},
		{name: "why", is: newWhy(g, chats.audit)},
		{name: "page", is: webPage{}},
		{name: "settings", is: s.settings}, // before the parts that are reloaded after it, so they see the new settings
		{name: "webhooks", is: s.front.webhooks},
		{name: "models", is: chats.chains},
		{"front", listening, true, s.front},
		{"accounts", beside, r.Serves() && r.Receives(), &accounts{foundation: g, liveChannels: chats.liveChannels, owners: chats.owners, offer: c.Offer}},
		{"channel news", beside, r.Serves() && r.Receives(), newChannelNews(g, chats.liveChannels)},
		{"problems", beside, r.Serves(), &problemWatch{foundation: g, liveChannels: chats.liveChannels, owners: chats.owners, costs: chats.costs, lists: c.Models}},
		{"reload", beside, r.Serves(), &reloading{foundation: g, read: c.Reload}},
		{"gateways", receiving, r.Receives(), gates},
		{"own data", answering, r.Receives(), ownData},
		{"tools", answering, r.Works(), work.toolbox},
		{"worker", answering, answers, work.answerer},
		{"timers", answering, answers, newTimers(g, chats.asks, work.schedules)},
		{"asks", answering, answers, chats.asks},
		{"schedules", answering, answers, work.schedules},
		{"heartbeat", answering, answers, chats.heartbeat},
		{"sub-agents", answering, answers, work.subagents},
		{"reservations", answering, answers, chats.costs.newSweeper()},
		{"jobs", background, r.Works(), jobsRunning{work.jobs}},
		{"dispatchers", sending, r.Dispatches(), newDispatchers(g, chats)},
		{"subscriptions", sending, r.Serves() && r.Dispatches(), s.front.subscribing},
		{"files to send", upkeep, r.Serves() && r.Dispatches(), work.fileCopies},
		{"undo", upkeep, r.Serves() && r.Works(), work.undoing},
		{"archive", upkeep, r.Serves(), newArchive(g)},
		{"erasing", upkeep, r.Serves(), chats.erasing},
		{"requests to erase", upkeep, true, chats.erasing.requests},
		{"vectors", upkeep, r.Serves(), g.words},
		{"description", upkeep, g.inFleet(), running(g.describe)},
		{"traces", upkeep, true, g.traces}, // after all parts that record spans
		{"rewriting", rewriting, true, running(chats.erasing.rewrite)},
		{name: "session cache", is: work.answerer.sessionCache},
		{name: "prompts", is: work.prompts},
		{name: "memory", is: work.memories},
	}
	return append(append(all, tableUpkeep(g, r.Serves())...), s.doctor(c)...)
}

// doctor returns the part that examines the bot; none if this process has no doctor.
func (s *Server) doctor(c Config) []part {
	if c.Doctor == nil {
		return nil
	}
	return []part{{"doctor", beside, true, c.Doctor(s.foundation.settings.Load, s.front.hidden.text, s.foundation.log)}}
}
