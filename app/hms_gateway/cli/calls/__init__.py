"""Commands that call a gateway: arguments, answers, explanations."""
