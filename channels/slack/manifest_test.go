package slack_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/channels/slack"
	"parley/channels/slack/interaction"
)

// scopesOfCalls returns the scopes that each of the slack-go functions that we call needs on the bot's token.
// Socket Mode needs its scope on the app's token instead.
func scopesOfCalls() map[string][]string {
	history := []string{"channels:history", "groups:history", "im:history", "mpim:history"}
	return map[string][]string{
		"AuthTestContext":                            nil,
		"PublishViewContext":                         nil,
		"SetAssistantThreadsTitleContext":            {"assistant:write"},
		"SetAssistantThreadsStatusContext":           {"chat:write"},
		"SetAssistantThreadsSuggestedPromptsContext": {"assistant:write"},
		"StartSocketModeContext":                     nil,
		"PostMessageContext":                         {"chat:write"},
		"PostEphemeralContext":                       {"chat:write"},
		"UpdateMessageContext":                       {"chat:write"},
		"OpenConversationContext":                    {"im:write"},
		"GetConversationInfoContext":                 {"channels:read", "groups:read", "im:read", "mpim:read"},
		"GetUploadURLExternalContext":                {"files:write"},
		"UploadToURL":                                nil,
		"CompleteUploadExternalContext":              {"files:write"},
		"AddReactionContext":                         {"reactions:write"},
		"GetUserInfoContext":                         {"users:read"},
		"GetConversationHistoryContext":              history,
		"GetConversationRepliesContext":              history,
		"GetConversationsForUserContext":             {"channels:read", "groups:read", "im:read", "mpim:read"},
		"GetUsersInConversationContext":              {"channels:read", "groups:read", "im:read", "mpim:read"},
	}
}

// scopesOfEvents returns, by event that we read, the scope that the app needs for it.
func scopesOfEvents() map[string]string {
	return map[string]string{
		"app_home_opened":                  "",
		"app_mention":                      "app_mentions:read",
		"assistant_thread_context_changed": "assistant:write",
		"assistant_thread_started":         "assistant:write",
		"message.channels":                 "channels:history",
		"message.groups":                   "groups:history",
		"message.im":                       "im:history",
		"message.mpim":                     "mpim:history",
		"reaction_added":                   "reactions:read",
		"reaction_removed":                 "reactions:read",
	}
}

// manifestList returns the list under a key of the manifest.
func manifestList(t *testing.T, manifest, key string) []string {
	t.Helper()
	_, below, found := strings.Cut(manifest, "\n"+key+":\n")
	if !found {
		t.Fatalf("the manifest has no %q", strings.TrimSpace(key))
	}
	var all []string
	for line := range strings.Lines(below) {
		one, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		all = append(all, one)
	}
	return all
}

func TestTheManifestAsksForWhatIsUsedAndNothingElse(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "slack-manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(filepath.Join("assistant", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, below...)
	used := map[string]bool{}
	calls := regexp.MustCompile(`\bapi\.([A-Z]\w*)\(`)
	seen := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calls.FindAllStringSubmatch(string(source), -1) {
			needs, ok := scopesOfCalls()[call[1]]
			if !ok {
				t.Errorf("%s calls %s, of which the table does not know what scope it needs", name, call[1])
			}
			seen[call[1]] = true
			for _, scope := range needs {
				used[scope] = true
			}
		}
	}
	for call := range scopesOfCalls() {
		if !seen[call] {
			t.Errorf("the table has %s, which nobody calls", call)
		}
	}
	used["commands"] = true   // the slash command and the shortcut need this
	used["files:read"] = true // downloads need this, but they are not calls of the API
	events := manifestList(t, string(data), "    bot_events")
	for _, event := range events {
		used[scopesOfEvents()[event]] = true
	}
	delete(used, "") // from events that need no scope
	if want := slices.Sorted(maps.Keys(scopesOfEvents())); !slices.Equal(events, want) {
		t.Errorf("the manifest subscribes to %v, want %v", events, want)
	}
	if got, want := manifestList(t, string(data), "    bot"), slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
		t.Errorf("the manifest asks for %v, used is %v", got, want)
	}
	if got := manifestList(t, string(data), "    bot"); !slices.Equal(got, slack.Scopes()) {
		t.Errorf("the manifest asks for %v, and at the start %v are looked for", got, slack.Scopes())
	}
	if !strings.Contains(string(data), "socket_mode_enabled: true") {
		t.Error("the manifest does not switch Socket Mode on")
	}
	for _, feature := range []string{
		"home_tab_enabled: true\n", "assistant_view:\n", "interactivity:\n    is_enabled: true",
		"slash_commands:\n    - command: /parley\n", "should_escape: true\n",
		"shortcuts:\n    - name: ", "type: message\n      callback_id: " + interaction.Shortcut + "\n",
	} {
		if !strings.Contains(string(data), feature) {
			t.Errorf("the manifest lacks %q", feature)
		}
	}
}
