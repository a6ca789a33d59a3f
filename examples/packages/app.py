"""Uses a package of this project's virtual environment."""

import greeting

print(greeting.greet("the project's .venv"))
