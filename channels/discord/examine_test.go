package discord_test

import (
	"reflect"
	"slices"
	"strconv"
	"testing"

	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

func TestMissingRightsAreFound(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	if may, err := c.MayReadContent(t.Context()); err != nil || !may {
		t.Errorf("the bot may read: %v, %v", may, err)
	}
	if lack, err := c.FindMissingRights(t.Context()); err != nil || len(lack) != 0 {
		t.Errorf("the bot lacks %v, %v", lack, err)
	}
	if err := c.CheckGateway(t.Context()); err != nil {
		t.Error(err)
	}
	l.server.AllowContent(false)
	l.server.SetPermissions(1<<10 | 1<<11) // may see channels and send messages
	if may, err := c.MayReadContent(t.Context()); err != nil || may {
		t.Errorf("the bot may read: %v, %v", may, err)
	}
	lack, err := c.FindMissingRights(t.Context())
	if err != nil || len(lack) != 1 || lack[0].Server != "Home (900)" || !slices.Contains(lack[0].Rights, "Read Message History") || slices.Contains(lack[0].Rights, "Send Messages") {
		t.Errorf("the bot lacks %v, %v", lack, err)
	}
	sends := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, SendsOnly: true})
	if lack, err := sends.FindMissingRights(t.Context()); err != nil || len(lack) != 1 || !slices.Equal(lack[0].Rights, []string{"Attach Files"}) {
		t.Errorf("a bot that only sends lacks %v, %v", lack, err)
	}
	l.server.SetPermissions(1 << 3)
	if lack, err := c.FindMissingRights(t.Context()); err != nil || len(lack) != 0 {
		t.Errorf("an administrator lacks %v, %v", lack, err)
	}
}

// A channel can withhold permissions that a role has, and grant them to one member. A thread has the
// permissions of its channel.
func TestMissingRightsInAChannelAreFound(t *testing.T) {
	l := newListener(t)
	for i, name := range []string{"quiet", "closed", "mended", "open"} {
		l.server.AddChannel(strconv.Itoa(301+i), name)
	}
	l.server.AddThread("401", "301", "in it")
	l.server.Say("11", "501", "a chat with one person")
	const send, sendInThreads = 1 << 11, 1 << 38
	l.server.Deny("301", discordtest.Guild, send|sendInThreads)
	l.server.Deny("302", discordtest.BotRole, 1<<10)
	l.server.Deny("303", discordtest.Guild, send)
	l.server.Allow("303", discordtest.Bot, send)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	lack, err := c.FindMissingRightsIn(t.Context(), []string{"304", "303", "301", "401", "302", "301", "11", "9999"})
	if err != nil {
		t.Fatal(err)
	}
	want := []discord.MissingRights{
		{Server: "Home (900)", Channel: "#quiet (301)", Rights: []string{"Send Messages"}},
		{Server: "Home (900)", Channel: "#in it (401)", Rights: []string{"Send Messages in Threads"}},
		{Channel: "302", Rights: []string{"View Channels"}},
		{Channel: "9999", Rights: []string{"View Channels"}},
	}
	if !reflect.DeepEqual(lack, want) {
		t.Errorf("the bot lacks %+v, want %+v", lack, want)
	}
	sends := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, SendsOnly: true})
	l.server.Deny("304", discordtest.Bot, 1<<16) // reading the history, which the bot does not need
	if lack, err := sends.FindMissingRightsIn(t.Context(), []string{"304", "303"}); err != nil || len(lack) != 0 {
		t.Errorf("a bot that only sends lacks %+v, %v", lack, err)
	}
	l.server.SetPermissions(1 << 3)
	if lack, err := c.FindMissingRightsIn(t.Context(), []string{"301"}); err != nil || len(lack) != 0 {
		t.Errorf("an administrator lacks %+v, %v", lack, err)
	}
}

// ThreadsAmong returns which of some channels are threads.
func TestThreadsAmongChannelsAreFound(t *testing.T) {
	l := newListener(t)
	l.server.AddForum("350", "forum")
	l.server.AddThread("351", "350", "post")
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	got, err := c.ThreadsAmong(t.Context(), []string{"100", "200", "351", "350", "9999", "no number"})
	if want := map[string]string{"200": "100", "351": "350"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("threads are %v, %v, want %v", got, err, want)
	}
	l.server.Fail("", "", 1, discordtest.Answer(500, "{}"))
	if got, err := c.ThreadsAmong(t.Context(), []string{"100"}); err == nil {
		t.Errorf("where Discord does not answer, threads are %v", got)
	}
}

// The link invites this application, with the permissions that the examiner checks.
func TestInvitation(t *testing.T) {
	r := newRig(t)
	link, err := r.Invitation(t.Context())
	if want := "https://discord.com/oauth2/authorize?client_id=" + discordtest.Bot + "&permissions=274878008384&scope=bot+applications.commands"; err != nil || link != want {
		t.Errorf("the link is %s (%v), want %s", link, err, want)
	}
}
