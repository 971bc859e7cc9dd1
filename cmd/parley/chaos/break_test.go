package chaos

import (
	"math/rand/v2"
	"syscall"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
)

// pause waits for at least least, plus a random part of more. It returns false at once when the storm is over.
func pause(random *rand.Rand, least, more time.Duration, over <-chan struct{}) bool {
	select {
	case <-over:
		return false
	case <-time.After(least + time.Duration(random.Int64N(int64(more)))):
		return true
	}
}

// pauseLength returns a random time for which a process is paused; it is longer than a lease.
func pauseLength(random *rand.Rand) time.Duration {
	return 6*time.Second + time.Duration(random.Int64N(int64(3*time.Second)))
}

// breakMembers kills, pauses and restarts processes of the bot until the storm is over.
func breakMembers(s *storm, random *rand.Rand, over <-chan struct{}) {
	for pause(random, 300*time.Millisecond, 2*time.Second, over) {
		m := s.members[random.IntN(len(s.members))]
		switch act := random.IntN(10); {
		case act < 4:
			m.signal(syscall.SIGKILL, time.Duration(random.Int64N(int64(2*time.Second))))
			s.countFault("killed a " + m.role)
		case act < 7:
			m.signal(syscall.SIGSTOP, 0)
			<-time.After(pauseLength(random))
			m.signal(syscall.SIGCONT, 0)
			s.countFault("stopped a " + m.role)
		default:
			m.signal(syscall.SIGTERM, 0)
			s.countFault("restarted a " + m.role)
		}
	}
}

// breakServers kills and pauses Redis and PostgreSQL until the storm is over.
func breakServers(s *storm, random *rand.Rand, over <-chan struct{}) {
	for pause(random, 3*time.Second, 6*time.Second, over) {
		away := time.Duration(random.Int64N(int64(3 * time.Second)))
		switch random.IntN(4) {
		case 0, 1:
			what, mend := s.redis.Break(random)
			s.countFault(what)
			if err := mend(); err != nil {
				s.T.Errorf("Redis does not come back: %v", err)
				return
			}
		case 2:
			s.pg.Kill()
			<-time.After(away)
			s.pg.Restart()
			s.countFault("killed PostgreSQL")
		case 3:
			resume := s.pg.Stop()
			<-time.After(pauseLength(random))
			resume()
			s.countFault("stopped PostgreSQL")
		}
	}
}

// breakPlatforms makes sends fail, or succeed without an answer, and cuts the connections of Slack and Discord, until
// the storm is over. It removes a fault that no send has met before it adds the next one. Otherwise faults would pile
// up while nothing is sent, and one message would meet them all.
func breakPlatforms(s *storm, random *rand.Rand, over <-chan struct{}) {
	heal := func() { s.Telegram.ClearFaults(); s.sl.ClearFaults(); s.dc.ClearFaults() }
	defer heal()
	for pause(random, 200*time.Millisecond, 2*time.Second, over) {
		fault := telegramtest.Fault{Method: "sendMessage", Times: 1}
		heal()
		switch random.IntN(19) {
		case 0:
			fault.Act = telegramtest.Cut
			s.Telegram.Fail(fault)
			s.countFault("cut an answer of Telegram's")
		case 1:
			fault.Act, fault.Status, fault.Description = telegramtest.Refuse, 502, "Bad Gateway"
			s.Telegram.Fail(fault)
			s.countFault("failed a send to Telegram")
		case 2:
			fault.Act, fault.Status, fault.Description, fault.RetryAfter = telegramtest.Refuse, 429, "Too Many Requests: retry after 1", 1
			s.Telegram.Fail(fault)
			s.countFault("limited a send to Telegram")
		case 3:
			s.sl.Fail("chat.postMessage", "", 1, slacktest.Cut(true))
			s.countFault("cut an answer of Slack's")
		case 4:
			s.sl.Fail("chat.postMessage", "", 1, slacktest.Status(503, "out for a moment"))
			s.countFault("failed a send to Slack")
		case 5:
			s.sl.Fail("", "", 1, slacktest.Limit("1"))
			s.countFault("limited a call to Slack")
		case 6:
			s.sl.CutSockets()
			s.countFault("cut Slack's sockets")
		case 7:
			s.sl.Disconnect("refresh_requested", 300*time.Millisecond)
			s.countFault("had Slack's sockets replaced")
		case 8:
			s.sl.Deafen()
			s.countFault("lost Slack's sockets on the way")
		case 9:
			s.dc.Fail("POST messages", "", 1, discordtest.Cut(true))
			s.countFault("cut an answer of Discord's")
		case 10:
			s.dc.Fail("POST messages", "", 1, discordtest.Answer(503, "out for a moment"))
			s.countFault("failed a send to Discord")
		case 11:
			s.dc.Fail("", "", 1, discordtest.Answer(429, `{"retry_after": 1, "global": false}`))
			s.countFault("limited a call to Discord")
		case 12:
			s.dc.CutGateway()
			s.countFault("cut Discord's connections")
		case 13:
			s.dc.ExpireSessions()
			s.dc.CloseGateway(4009)
			s.countFault("had Discord's sessions ended")
		case 14:
			s.dc.WriteFrame(`{"op":7,"d":null}`)
			s.countFault("had Discord's connections replaced")
		case 15:
			s.dc.MuteConnections()
			s.countFault("lost Discord's connections on the way")
		default:
			failFiles(s, random)
		}
	}
}
