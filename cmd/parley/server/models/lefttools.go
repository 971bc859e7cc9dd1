package models

// A LeftTool is a tool that a model is not shown, because the model's server has refused the tool, or takes no more
// tools.
type LeftTool struct{ Model, Tool, Why string }

// LeftTools returns the tools that models are not shown because of the models' servers, as far as
// this process knows, model by model, and each model's sorted by name.
func (l Lists) LeftTools() []LeftTool {
	var all []LeftTool
	for _, m := range l.All() {
		if m.client == nil {
			continue
		}
		for _, left := range m.client.LeftTools() {
			all = append(all, LeftTool{m.Model.Info().Name, left.Name, left.Why})
		}
	}
	return all
}

// LeftToolsByModel returns the names of these tools by model.
func (l Lists) LeftToolsByModel() map[string][]string {
	left := map[string][]string{}
	for _, one := range l.LeftTools() {
		left[one.Model] = append(left[one.Model], one.Tool)
	}
	return left
}
