// Uses a package of this project's node_modules.
const greet = require("greeting");
console.log(greet("the project's node_modules"));
