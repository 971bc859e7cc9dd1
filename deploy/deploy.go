// Package deploy contains those files of this folder that the program itself needs: the systemd unit, which
// "parley serve --install" writes, and the manifest of the Slack app.
package deploy

import _ "embed"

// Unit returns the unit with which systemd runs Parley for a whole machine.
func Unit() string { return unit }

// SlackManifest returns the manifest of the Slack app that Parley needs.
func SlackManifest() string { return slackManifest }

var (
	//go:embed parley.service
	unit string
	//go:embed slack-manifest.yaml
	slackManifest string
)
