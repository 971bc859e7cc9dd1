package skills

import (
	"context"

	"parley/tools"
	"parley/tools/skills/folder"
)

// ProposeTool is the name of the tool with which an agent proposes a skill.
const ProposeTool = "skill_propose"

type proposeArgs struct {
	Name string `json:"name" jsonschema:"the skill's name, which is that of its folder in skills/"`
}

// NewPropose makes the tool with which an agent proposes a skill of its workspace to the operator. The function propose
// records the proposal and tells an owner about it; doing that twice is the same as once.
func NewPropose(propose func(ctx context.Context, call tools.Call, name string) error) tools.Tool {
	return tools.New(tools.Spec{
		// Nothing leaves the conversation until an owner has checked the proposal.
		Name: ProposeTool, Effect: tools.Idempotent, Permission: tools.FileWrite, MaxTimeout: -1, Touches: tools.TouchesNothing(),
		Description: "Propose a skill that you have written to skills/NAME/SKILL.md in your workspace, with its other files, for all conversations. An owner looks at it and accepts it, or not; until then only this conversation has it. Propose what will be useful again, and what you have tried. A conversation has one proposal at a time: another replaces it.",
	}, func(ctx context.Context, call tools.Call, args proposeArgs) (any, error) {
		if err := folder.CheckName(args.Name); err != nil {
			return nil, tools.Errorf(tools.InvalidArgs, "%v", err)
		}
		if err := propose(ctx, call, args.Name); err != nil {
			return nil, err
		}
		return "It is proposed. An owner will look at it.", nil
	})
}
