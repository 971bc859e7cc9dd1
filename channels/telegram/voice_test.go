package telegram_test

import (
	"net/http"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

// oggRecording begins like a recording in Ogg/Opus.
const oggRecording = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead\x01"

// A recording is sent as a voice note, and as a file only to people who accept no voice notes.
func TestARecordingIsSentAsAVoiceNote(t *testing.T) {
	r := newRig(t)
	if !channels.SendsVoice(r.Channel) {
		t.Error("Telegram has voice notes")
	}
	files := []struct {
		file    bus.File
		refused string
		voice   bool
	}{
		{bus.File{Name: "voice.ogg", Data: []byte(oggRecording), Voice: true}, "", true},
		{bus.File{Name: "voice.ogg", Data: []byte(oggRecording)}, "", false}, // a file of the agent's own, not a recording of its words
		{bus.File{Name: "voice.ogg", Data: []byte(oggRecording), Voice: true}, "Bad Request: VOICE_MESSAGES_FORBIDDEN", false},
		{bus.File{Name: "voice.ogg", Data: []byte(oggRecording), Voice: true}, "Bad Request: not enough rights to send voice notes to the chat", false},
	}
	for _, f := range files {
		if f.refused != "" {
			r.server.Fail(telegramtest.Fault{Method: "sendVoice", Times: 1, Status: http.StatusBadRequest, Description: f.refused})
		}
		if _, err := r.SendFile(t.Context(), address("5"), f.file, textPart("listen")); err != nil {
			t.Fatal(err)
		}
	}
	sent := r.server.Sent(5)
	if len(sent) != len(files) {
		t.Fatalf("%d arrived of %d", len(sent), len(files))
	}
	for i, m := range sent {
		if m.File == nil || m.File.Voice != files[i].voice || m.File.Name != "voice.ogg" || m.Text != "listen" || string(m.File.Data) != oggRecording {
			t.Errorf("file %d arrived as %+v", i, m)
		}
	}
}
