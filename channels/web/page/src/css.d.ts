// Importing a style sheet makes the builder add it to page.css.
declare module "*.css";
