from pages.parts.frame import main

main()
